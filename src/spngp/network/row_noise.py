"""The noise of single rows, for leaves that see rows of other regions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from spngp._support.types import Array, Indices
from spngp.network.placement import Placed, log_path_weights, route

if TYPE_CHECKING:
    from spngp.network.nodes import Leaf


class RowNoise:
    """The variance of the noise of single rows, as the experts of their own regions know it.

    It is the average of what the leaves that a row reaches say, each by its probability; an output in doubt has its
    own. A noise that leaves on all rows share is tied, not local: a leaf that has it takes it for every row.

    Parameters
    ----------
    local : mapping of int to ndarray
        For each output, the variance of the noise of every row that may be context.
    tied : collection of (int, float)
        Outputs and noise variances that leaves on all rows share.
    own_noise : ndarray of shape (n, p), optional
        For outputs in doubt, NaN for others.
    """

    def __init__(
        self, local: Mapping[int, Array], tied: Collection[tuple[int, float]], own_noise: Array | None
    ) -> None:
        self._local, self._tied, self._own_noise = dict(local), frozenset(tied), own_noise

    @staticmethod
    def of(placed: list[Placed], X: Array, own_noise: Array | None) -> RowNoise:
        """The noise of the rows X by a posterior network."""
        leaves = [(i, cast("Leaf", item.node)) for i, item in enumerate(placed) if not item.children]
        rows, weights = route(placed, X), np.exp(log_path_weights(placed))
        local: dict[int, Array] = {}
        tied: set[tuple[int, float]] = set()
        counts: dict[tuple[int, float], int] = {}
        for i, leaf in leaves:
            total = local.setdefault(leaf.output, np.zeros(X.shape[0]))
            total[rows[i]] += weights[i] * leaf.noise_at(X[rows[i]])
            if leaf.gp.noise_profile is None:
                key = (leaf.output, leaf.noise_variance)
                counts[key] = counts.get(key, 0) + rows[i].size
        # as many rows as there are is possible for few values; those are looked at row by row
        candidates = {key for key, count in counts.items() if count >= X.shape[0]}
        for key in candidates:
            covered = np.zeros(X.shape[0], dtype=bool)
            for i, leaf in leaves:
                if (leaf.output, leaf.noise_variance) == key and leaf.gp.noise_profile is None:
                    covered[rows[i]] = True
            if covered.all():
                tied.add(key)
        return RowNoise(local, tied, own_noise)

    @property
    def tied(self) -> list[tuple[int, float]]:
        """Outputs and noise variances that leaves on all rows share."""
        return sorted(self._tied)

    def local(self, output: int) -> Array:
        """The variance of the noise of every row, as the experts of its region know it."""
        return self._local[output]

    def seen_by(self, leaf: Leaf, rows: Indices) -> Array | None:
        """What a leaf takes for the variance of the noise of these rows; none if it is its own throughout."""
        tied = (leaf.output, leaf.noise_variance) in self._tied and leaf.gp.noise_profile is None
        if tied and self._own_noise is None:
            return None
        noise = np.full(rows.size, leaf.noise_variance) if tied else self._local[leaf.output][rows]
        # NaN is not larger
        return noise if self._own_noise is None else np.fmax(noise, self._own_noise[rows, leaf.output])
