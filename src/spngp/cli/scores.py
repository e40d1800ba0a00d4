"""How good predictions are, as the commands tell it: a record of plain numbers."""

from __future__ import annotations

from typing import Any

from spngp.metrics import Scores


def record(scores: Scores) -> dict[str, Any]:
    """All scores of one target under the names that ``--json`` prints."""
    return {
        "rows": scores.n,
        "rmse": scores.rmse,
        "mae": scores.mae,
        "std_of_target": scores.std_of_y,
        "mean_std": scores.mean_std,
        "nlpd": scores.nlpd,
        "crps": scores.crps,
        "coverage": {f"{level:g}": share for level, share in scores.coverage.items()},
        "pit": list(scores.pit),
    }
