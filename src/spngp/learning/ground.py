"""The ground of a large set: what its regions have in common, learnt before any of them is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from spngp._support.progress import Progress
from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.gp.optimisation import Convergence
from spngp.learning.context_share import context_share
from spngp.learning.cut_candidates import noise_cuts
from spngp.learning.cutting import cut_by_noise
from spngp.learning.experts import Curvatures, curvatures_of, is_free
from spngp.learning.plan import Plan
from spngp.learning.setting_aside import trusted_outputs
from spngp.learning.tied import Tied, learn_tied
from spngp.structure import leaf_regions
from spngp.structure.regions import Cut


@dataclass(frozen=True, eq=False)
class Ground:
    """What regions have in common.

    Attributes
    ----------
    plan : Plan
        How experts are learnt.
    tied : Tied
        Tied parameters, and the regions of the rows that they were learnt from.
    curvatures : dict
        Of the log evidence, for experts.
    first : mapping of Box to Cut
        Cuts that are made before any other, where the noise changes.
    trusted : ndarray, optional
        Outputs of the rows that all this was learnt from, without those that look like gross errors, if any do.
    """

    plan: Plan
    tied: Tied
    curvatures: Curvatures
    first: Mapping[Box, Cut] = field(default_factory=dict)
    trusted: Array | None = None


def lay_ground(
    W: Array, sound: Array, plan: Plan, rng: np.random.Generator, convergence: Convergence, progress: Progress
) -> Ground:
    """Tied parameters, regions and curvatures from rows in the units of learning; NaN in ``sound`` is left out."""

    def trusted_in(groups: list[Indices], found: Tied) -> Array | None:
        return trusted_outputs(found.gps, groups, W, sound, plan) if found.found_errors else None

    def noise_differs(found: Tied) -> bool:
        """Whether a cut where the noise changes would be made by what is known so far."""
        trusted = trusted_in(found.sampled, found)
        return bool(noise_cuts(found, W, sound if trusted is None else trusted, plan))

    tied = learn_tied(W, sound, plan, rng, convergence, progress, noise_differs)
    trusted = trusted_in([region.rows for region in leaf_regions(tied.regions)], tied)
    learnt_from = sound if trusted is None else trusted
    first: dict[Box, Cut] = {}
    final = replace(plan, chooses_cuts=False)
    if plan.chooses_cuts and not is_free(tied.regions, plan):
        tied, final, first = cut_by_noise(tied, W, learnt_from, final, rng)
        if first:  # regions find errors by themselves: those that are learnt from now on
            trusted = trusted_in([region.rows for region in leaf_regions(tied.regions)], tied)
            learnt_from = sound if trusted is None else trusted
    if not (is_free(tied.regions, plan) or first or final.cuts_leaves):  # noise that differs is not known yet
        final = replace(final, context_share=context_share(tied, W, learnt_from, final))
    return Ground(final, tied, curvatures_of(tied, W, learnt_from, final, rng), first, trusted)
