"""Where the search for tied parameters begins again: other rows, and sums that begin from one of their parts.

The evidence of a sum of two kernels has many maxima, and which one is found depends on the rows of the subset that
parameters are first learnt from. What is found in several ways is compared on one larger block of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spngp._support.threads import map_leaves
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Block
from spngp.learning.parts import parts_of, smoothness, with_short_part
from spngp.learning.search import Alternatives, evidence


def better_of(
    first: Alternatives, second: Alternatives, judges: Sequence[Block], n_jobs: int | None = None
) -> Alternatives:
    """Of each kernel the parameters that are more likely on ``judges``."""
    pairs = list(zip(first.gps, second.gps, strict=True))

    def more_likely(pair: tuple[ExactGP, ExactGP]) -> ExactGP:
        return pair[0] if pair[0] is pair[1] else max(pair, key=lambda gp: evidence(gp, judges))

    return replace(first, gps=map_leaves(more_likely, pairs, n_jobs))


def sums_from_parts(known: Alternatives, judges: Sequence[Block], n_jobs: int | None = None) -> Alternatives:
    """Sums of two that are less likely than one kernel of their kind alone begin anew: from it and a short second part.

    A sum contains its parts, so its search has ended badly then. The same object if there is no such sum.
    """
    values = map_leaves(lambda gp: evidence(gp, judges), known.gps, n_jobs)
    gps = list(known.gps)
    for j, gp in enumerate(known.gps):
        kinds = [smoothness(part) for part in parts_of(gp)]
        alone = [i for i, other in enumerate(known.gps) if [smoothness(part) for part in parts_of(other)] == kinds[:1]]
        best = max(alone, key=lambda i: values[i], default=j)
        if len(kinds) == 2 and kinds[0] == kinds[1] and values[best] > values[j]:
            gps[j] = with_short_part(known.gps[best])
    return known if all(gp is before for gp, before in zip(gps, known.gps, strict=True)) else replace(known, gps=gps)
