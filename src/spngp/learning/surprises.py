"""Surprises: rare outputs that the noise of the others says nothing about.

Rows that were all well predicted do not prove that the next one will be. A region where rows repeat has hardly any
noise, and one wrong output there would cost thousands of nats. So a new output is a surprise with probability
1 / (rows + 100), and then five times as far off as usual: as the noise, or else predictions of rows that were left out,
let one expect. Where no noise is believed in, rows that were left out are all that tells how far off an output may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spngp._support.types import Array, Indices
from spngp.network import Node
from spngp.noise import NoiseShape

_ROWS_WITHOUT = 100.0  # imaginary rows without surprises
_FACTOR = 25.0  # times the usual variance, averaged over all rows, but
_LARGEST = 1.0  # times the variance of the output, at most


def surprise_variances(network: Node, spreads: Array, left_out: Sequence[float]) -> Array:
    """Variance of a surprise of each output, whose standard deviations are ``spreads``, by a posterior network.

    ``left_out`` are, for each output, the mean variance of predictions of rows that were left out.
    """
    noise, rows = np.zeros(spreads.size), np.zeros(spreads.size)
    for leaf, _, weight in network.responsibilities():
        share = weight * leaf.gp.n_own
        noise[leaf.output] += share * leaf.noise_variance
        rows[leaf.output] += share
    return variances_by(noise, rows, spreads, left_out)


def variances_by(noise: Array, rows: Array, spreads: Array, left_out: Sequence[float]) -> Array:
    """The same from sums over all leaves: of weight times rows times noise variance, and of weight times rows."""
    usual = np.maximum(noise / np.maximum(rows, np.finfo(float).tiny), left_out)
    return np.asarray(np.minimum(_FACTOR * usual, _LARGEST * spreads**2))


@dataclass(frozen=True)
class Surprises:
    """What may surprise: how many outputs did not, and the variance if one does; None if none can."""

    counts: Indices
    variances: Array | None

    def added_to(self, shape: NoiseShape, output: int, noise_variance: float) -> NoiseShape:
        """The shape of the noise where it has this variance; a surprise is never nearer than the noise there."""
        if self.variances is None or not noise_variance > 0:
            return shape
        factor = max(1.0, float(self.variances[output]) / noise_variance)
        return shape.with_surprises(1.0 / (float(self.counts[output]) + _ROWS_WITHOUT), factor)
