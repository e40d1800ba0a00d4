"""The regions of a fitted model, each with its experts: the records of ``regions_`` put together by box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from spngp._support.types import Array


@dataclass(frozen=True)
class ExpertRegion:
    """A box with the experts that are alternatives there.

    Attributes
    ----------
    low, high : ndarray of shape (d,)
        Borders, in the units of X; infinite where the box is open.
    rows : int
        Training rows inside.
    weight : float
        Probability that the model cuts the space so that this is a region.
    log_evidence : float
        Of its rows, all experts together, in the units of y.
    noise_std : float
        Of the experts together, in the units of y.
    experts : tuple of dict
        Records of ``regions_``, most plausible first; ``share`` is an expert's weight within the region.
    """

    low: Array
    high: Array
    rows: int
    weight: float
    log_evidence: float
    noise_std: float
    experts: tuple[dict[str, Any], ...]

    @property
    def log_evidence_per_row(self) -> float:
        """Log evidence divided by the rows; NaN without rows."""
        return self.log_evidence / self.rows if self.rows else float("nan")

    def contains(self, X: Array) -> Array:
        """Which rows lie inside; a row on a border belongs to the lower side."""
        low, high = self.low, self.high
        return np.asarray(((low < X) & (high >= X)).all(axis=1))


def expert_regions(estimator: Any, output: int = 0) -> list[ExpertRegion]:
    """The regions of one output, those that matter most (rows times weight) first.

    Examples
    --------
    >>> from spngp import SPNGPRegressor, datasets
    >>> from spngp.plotting.expert_regions import expert_regions
    >>> data = datasets.load("motorcycle")
    >>> model = SPNGPRegressor(max_leaf_size=50, hyperparameters="fixed", random_state=0).fit(data.X, data.Y[:, 0])
    >>> [(region.rows, len(region.experts), round(region.weight, 2)) for region in expert_regions(model)]
    [(34, 2, 1.0), (34, 2, 1.0), (33, 2, 1.0), (32, 2, 1.0)]
    """
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in estimator.regions_:
        if record["output"] == output:
            groups.setdefault((*record["low"], *record["high"]), []).append(record)
    regions = [_region(records) for records in groups.values()]
    return sorted(regions, key=lambda region: (-region.rows * region.weight, region.low.tolist(), region.high.tolist()))


def _region(records: list[dict[str, Any]]) -> ExpertRegion:
    evidences, weights = (np.array([record[name] for record in records]) for name in ("log_evidence", "weight"))
    log_evidence = float(logsumexp(evidences) - np.log(len(records)))  # experts are equally likely beforehand
    # alternatives need not be equally likely beforehand: what the rows made of them is in the weights
    shares = weights / weights.sum() if weights.sum() > 0 else np.exp(evidences - logsumexp(evidences))
    noise = np.sqrt(shares @ np.square([record["noise_std"] for record in records]))
    experts = [{**record, "share": float(share)} for record, share in zip(records, shares, strict=True)]
    return ExpertRegion(
        low=np.array(records[0]["low"]),
        high=np.array(records[0]["high"]),
        rows=int(records[0]["rows"]),
        weight=float(min(weights.sum(), 1.0)),
        log_evidence=log_evidence,
        noise_std=float(noise),
        experts=tuple(sorted(experts, key=lambda record: -record["share"])),
    )
