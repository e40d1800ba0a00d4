"""All segmentations along one input, as a region graph whose size grows with the square of the cuts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spngp._support.types import Array
from spngp.network import Box
from spngp.structure.regions import Partition, Region


def segmentations(X: Array, axis: int, cuts: Sequence[float], probability: float, smooth: bool = False) -> Region:
    """Every way to cut at some of the given positions: 2^m of them in (m + 1)(m + 2)/2 segments.

    What lies above a cut is segmented in the same ways wherever the segment below began, so it is one region: whole, or
    a first segment and the rest. Each segmentation is one induced tree, whose prior weight is that of cutting at every
    position with the same probability, independently; sums over the regions are dynamic programming.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    axis : int
    cuts : sequence of float
        Positions in ascending order.
    probability : float
        Of a cut at each position.
    smooth : bool
        Whether experts have the noise profile of all rows.
    """
    m = len(cuts)
    rows = np.searchsorted(cuts, X[:, axis], side="left")  # on the cut: the lower side
    rest: Region | None = None
    rests: list[Region] = []  # what lies above each cut, the last first
    for i in range(m, -1, -1):
        box = Box().cut(axis, (cuts[i - 1],))[1] if i else Box()
        partitions, weights = [], [(1.0 - probability) ** (m - i)]
        for j in range(i + 1, m + 1):
            first_box, _ = box.cut(axis, (cuts[j - 1],))
            first = Region(first_box, np.flatnonzero((rows >= i) & (rows < j)), smooth=smooth)
            partitions.append(Partition(axis, (cuts[j - 1],), (first, rests[m - j])))
            weights.append(probability * (1.0 - probability) ** (j - i - 1))
        own = np.flatnonzero(rows >= i)
        rest = Region(box, own, tuple(partitions), whole=bool(partitions), weights=tuple(weights), smooth=smooth)
        rests.append(rest)
    assert rest is not None
    return rest
