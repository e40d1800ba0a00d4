"""How good predictions are, gathered block by block: accuracy, density, calibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from spngp import metrics
from spngp._support.types import Array
from spngp.predictive import GaussianMixture

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # of the central intervals whose coverage is told
_BINS = 10


class Scores:
    """Scores of one target over all blocks of rows added to it; rows without the target do not count."""

    def __init__(self) -> None:
        self._values: list[Array] = []
        self._crps = 0.0

    def add(self, mixture: GaussianMixture, y: Array) -> None:
        """Compare a block of predictions, shape (n,), with what was observed."""
        seen = ~np.isnan(y)
        if not seen.any():
            return
        mixture = GaussianMixture(mixture.log_weights[seen], mixture.means[seen], mixture.variances[seen])
        y = y[seen]
        self._crps += metrics.crps(mixture, y) * y.size
        self._values.append(np.stack([y, mixture.mean, mixture.std, mixture.logpdf(y), metrics.pit(mixture, y)]))

    @property
    def n_rows(self) -> int:
        """How many rows were compared."""
        return sum(block.shape[1] for block in self._values)

    def summary(self) -> dict[str, Any]:
        """All scores, as plain numbers."""
        y, mean, std, logpdf, pit = np.concatenate(self._values, axis=1)
        counts, _ = np.histogram(pit, bins=_BINS, range=(0.0, 1.0))
        return {
            "rows": int(y.size),
            "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
            "mae": float(np.mean(np.abs(y - mean))),
            "std_of_target": float(np.std(y)),
            "mean_std": float(np.mean(std)),
            "nlpd": float(-np.mean(logpdf)),
            "crps": self._crps / y.size,
            # y lies in the central interval of that probability exactly if its PIT lies in the middle share
            "coverage": {f"{level:g}": float(np.mean(np.abs(pit - 0.5) <= 0.5 * level)) for level in LEVELS},
            "pit": (counts / y.size).tolist(),
        }


def one_target(mixture: GaussianMixture, k: int) -> GaussianMixture:
    """The mixtures of one target, of a prediction for one or for several."""
    if len(mixture.shape) == 1:
        return mixture
    return GaussianMixture(mixture.log_weights[:, k], mixture.means[:, k], mixture.variances[:, k])
