"""On the evaluation sets, where they are to be had."""

import numpy as np
import pytest

from spngp import SPNGPRegressor, datasets, metrics

needs_energy = pytest.mark.skipif(
    not datasets.status(datasets.find("energy")).available, reason="needs energy.csv in $SPNGP_DATA"
)


@pytest.mark.long
@needs_energy
def test_a_missing_output_leaves_the_other_alone():
    data = datasets.load("energy")
    table = np.hstack([data.X, data.Y])
    order = np.random.default_rng(0).permutation(len(table))
    train, test = table[order[:220]], table[order[220:]]
    Y = train[:, 8:].copy()
    Y[np.random.default_rng(1).random(220) < 0.3, 1] = np.nan
    n_missing = int(np.isnan(Y).sum())
    assert n_missing > 50
    complete, partial = (
        SPNGPRegressor(random_state=0, n_jobs=2).fit(train[:, :8], outputs) for outputs in (train[:, 8:], Y)
    )
    scores = [metrics.rmse(model.predict_dist(test[:, :8]), test[:, 8:]) for model in (complete, partial)]
    errors = [
        np.sqrt(np.mean((model.predict(test[:, :8]) - test[:, 8:]) ** 2, axis=0)) for model in (complete, partial)
    ]
    assert errors[1][0] == pytest.approx(errors[0][0], rel=0.01)
    assert scores[1] < 2 * scores[0]
    # every tree of experts holds every row once
    shares = [(record["output"], record["rows"] * record["weight"]) for record in partial.regions_]
    rows = [sum(share for output, share in shares if output == k) for k in (0, 1)]
    np.testing.assert_allclose(rows, [220, 220 - n_missing], rtol=1e-9)
