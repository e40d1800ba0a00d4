"""Predictions for rows that lack inputs which were never missing in the fit, or have a level that it has not seen.

Such a row is predicted once for each of a few donors, rows of the fit spread evenly over the values of what it lacks,
and the answer is the mixture of these predictions with equal weights. It is as wide as what is missing makes it. Inputs
that were missing in rows of the fit need none of this: how outputs are where they are missing was learnt.

A level that was not seen belongs to no region more than to another, where regions are cut between levels; and what the
levels of one region have in common is not what all have, since levels of like outputs have codes side by side. There it
is taken for the level of each donor in turn: it is as different as the known levels are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spngp._support.types import Array, Indices
from spngp.network import Node
from spngp.predictive import GaussianMixture

_DONORS = 16


@dataclass(frozen=True, eq=False)
class CompletedRows:
    """Rows of which those that lacked inputs are there several times.

    Attributes
    ----------
    rows : ndarray
        First the complete rows, then each of the others once for every donor.
    complete, incomplete : ndarray of int
        Positions of both among the rows as they were.
    """

    rows: Array
    complete: Indices
    incomplete: Indices

    @staticmethod
    def of(X: Array, known: Array, cut_categories: Sequence[int] = (), n_donors: int = _DONORS) -> CompletedRows:
        """Rows with NaN completed by rows of ``known``, which lack nothing.

        ``cut_categories`` are the inputs of levels along which regions are cut.
        """
        missing = np.isnan(X)
        if not (cut_categories or missing.any()):
            return CompletedRows(X, np.arange(X.shape[0]), np.empty(0, dtype=np.intp))
        for j in cut_categories:
            missing[:, j] |= X[:, j] % 2.0 == 1.0
        lacking = missing.any(axis=1)
        complete, incomplete = np.flatnonzero(~lacking), np.flatnonzero(lacking)
        if not incomplete.size:
            return CompletedRows(X, complete, incomplete)
        parts = [X[complete]]
        chosen: dict[int, Array] = {}  # donors, by the first input that is missing
        for i in incomplete:
            first = int(np.argmax(missing[i]))
            if first not in chosen:
                places = (np.arange(n_donors) + 0.5) / n_donors * known.shape[0]
                chosen[first] = known[np.argsort(known[:, first], kind="stable")[places.astype(np.intp)]]
            parts.append(np.where(missing[i], chosen[first], X[i]))
        return CompletedRows(np.concatenate(parts), complete, incomplete)

    def merged(self, mixture: GaussianMixture) -> GaussianMixture:
        """The mixture of each row as it was, from the mixtures of :attr:`rows`."""
        if not self.incomplete.size:
            return mixture
        split, n = self.complete.size, self.incomplete.size
        per_donor = mixture[split:]
        n_donors = len(per_donor) // n

        def joined(part: Array) -> Array:
            by_donor = np.moveaxis(part.reshape(n, n_donors, *part.shape[1:]), 1, -2)
            return by_donor.reshape(*by_donor.shape[:-2], -1)

        log_weights = per_donor.log_weights - np.log(n_donors)
        whole = GaussianMixture(joined(log_weights), joined(per_donor.means), joined(per_donor.variances))
        parts = [mixture[:split], whole] if split else [whole]
        return GaussianMixture.concatenate(parts)[self._order]

    def averaged(self, values: Array) -> Array:
        """The mean over donors of values (rows, …)."""
        if not self.incomplete.size:
            return values
        split, n = self.complete.size, self.incomplete.size
        means = values[split:].reshape(n, -1, *values.shape[1:]).mean(axis=1)
        return np.concatenate([values[:split], means])[self._order]

    @property
    def _order(self) -> Indices:
        return np.argsort(np.concatenate([self.complete, self.incomplete]), kind="stable")


def cut_categories(levels: Sequence[int], network: Node) -> list[int]:
    """The inputs of levels along which the regions of a network are cut; ``levels`` are the numbers of them."""
    cut = {axis for _, box, _ in network.responsibilities() for axis, _, _ in box.sides}
    return [j for j, count in enumerate(levels) if count > 2 and j in cut]


def completed_once(X: Array, known: Array, rng: np.random.Generator) -> Array:
    """Rows with NaN, each completed by one row of ``known`` drawn at random."""
    missing = np.isnan(X)
    lacking = np.flatnonzero(missing.any(axis=1))
    if not lacking.size:
        return X
    X = X.copy()
    X[lacking] = np.where(missing[lacking], known[rng.integers(known.shape[0], size=lacking.size)], X[lacking])
    return X
