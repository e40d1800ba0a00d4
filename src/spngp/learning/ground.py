"""The ground of a large set: what its regions have in common, learnt before any of them is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from spngp._support.progress import Progress
from spngp._support.types import Array
from spngp.box import Box
from spngp.gp.optimisation import Convergence
from spngp.learning.cut_candidates import noise_cuts
from spngp.learning.cutting import cut_by_noise
from spngp.learning.experts import Curvatures, curvatures_of, is_free
from spngp.learning.plan import Plan
from spngp.learning.setting_aside import trusted_outputs
from spngp.learning.tied import Tied, learn_tied
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
    tied = learn_tied(W, sound, plan, rng, convergence, progress, lambda found: bool(noise_cuts(found, W, sound, plan)))
    trusted = trusted_outputs(tied.gps, tied.regions, W, sound, plan) if tied.found_errors else None
    if trusted is not None:
        sound = trusted
    first: dict[Box, Cut] = {}
    chooses, plan = plan.chooses_cuts and not is_free(tied.regions, plan), replace(plan, chooses_cuts=False)
    if chooses:
        tied, plan, first = cut_by_noise(tied, W, sound, plan, rng)
    return Ground(plan, tied, curvatures_of(tied, W, sound, plan, rng), first, trusted)
