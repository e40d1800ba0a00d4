"""When the outputs that came last are improbable: too far to one side, too far apart, or too close together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import chi2, norm

from spngp.streaming.upkeep import FALSE_ALARMS, WINDOW, _drift, _limits


def even_scores(n=WINDOW):
    """Normal scores as they are on average."""
    return ndtri((np.arange(n) + 0.5) / n)


def test_limits_have_the_probability_that_is_stated():
    _limits.cache_clear()
    farthest, low, high = _limits()
    total = 2 * norm.sf(farthest) + chi2.cdf(low, WINDOW) + chi2.sf(high, WINDOW)
    assert total == pytest.approx(FALSE_ALARMS, rel=1e-9)
    assert norm.sf(farthest) == pytest.approx(chi2.cdf(low, WINDOW)) == pytest.approx(chi2.sf(high, WINDOW))


def test_outputs_as_predicted_raise_no_alarm():
    assert _drift(ndtr(even_scores()), 0) == ""
    rng = np.random.default_rng(0)
    alarms = [_drift(rng.uniform(size=WINDOW), 0) for _ in range(4000)]
    assert sum(map(bool, alarms)) <= 12  # 4 are expected


@pytest.mark.parametrize(("side", "sign"), [(1.0, "+"), (-1.0, "-")])
def test_outputs_to_one_side(side, sign):
    farthest = _limits()[0] / np.sqrt(WINDOW)
    assert _drift(ndtr(0.9 * even_scores() + 0.98 * side * farthest), 2) == ""
    found = _drift(ndtr(0.9 * even_scores() + 1.02 * side * farthest), 2)
    assert found.startswith(f"the last {WINDOW} values of output 2 lie {sign}0.")
    assert found.endswith("standard deviations off")


@pytest.mark.parametrize("which", ["low", "high"])
def test_outputs_too_close_together_or_too_far_apart(which):
    _, low, high = _limits()
    scores = even_scores()
    limit = np.sqrt((low if which == "low" else high) / (scores @ scores))
    inside, outside = (1.02, 0.98) if which == "low" else (0.98, 1.02)
    assert _drift(ndtr(inside * limit * scores), 1) == ""
    found = _drift(ndtr(outside * limit * scores), 1)
    ratio = np.sqrt((outside * limit) ** 2 * (scores @ scores) / WINDOW)
    assert found == f"the last {WINDOW} values of output 1 spread {ratio:.2g} times as far as predicted"


def test_only_the_last_ones_count():
    far = np.full(WINDOW, 0.9999)
    assert _drift(np.concatenate([far, ndtr(even_scores())]), 0) == ""
    assert _drift(np.concatenate([ndtr(even_scores()), far]), 0) != ""
