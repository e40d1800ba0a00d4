"""An explanation adds up to the prediction."""

import numpy as np
import pandas as pd
import pytest

from spngp import GPRegressor, SPNGPRegressor
from spngp.kernels import SquaredExponential


def data(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    X[:20] = X[20:40]  # equal rows with other outputs
    return X, 10 + 5 * np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n)


def adds_up(model, x, output=0):
    found = model.explain(x, output=output)
    y = np.nan_to_num(np.asarray(model.y_train_).reshape(len(model.X_train_), -1)[:, output])
    mean, std = (np.asarray(part).reshape(-1)[output] for part in model.predict([x], return_std=True))
    np.testing.assert_allclose(found.constant + found.weights @ y, mean, rtol=1e-9)
    np.testing.assert_allclose([found.mean, found.std], [mean, std], rtol=1e-9)
    assert sum(item.weight for item in found.experts) == pytest.approx(1.0)
    return found


@pytest.mark.parametrize("changes", [{}, {"overlap": 0.0}, {"n_partitions": 2, "overlap": 1.0}])
def test_experts_and_rows_add_up_to_the_prediction(changes):
    X, y = data()
    y[50] += 100.0  # in doubt
    model = SPNGPRegressor(SquaredExponential([1.0, 3.0]), max_leaf_size=60, random_state=0, **changes).fit(X, y)
    assert 50 in model.outliers_[:, 0]
    found = adds_up(model, [0.5, -0.2])
    distances = [item.distance for item in found.nearest]
    assert distances == sorted(distances)
    assert [abs(item.weight) for item in found.heaviest] == sorted(np.abs(found.weights))[::-1][:5]
    item = found.nearest[0]
    assert item.y == y[item.row]
    assert item.weight == found.weights[item.row]
    assert "nearest rows" in repr(found)


def test_a_rise_of_one_output_moves_the_mean_by_its_weight():
    X, y = data()
    fixed = {"hyperparameters": "fixed", "noise_variance": 0.1}
    x, kernel = [0.5, -0.2], SquaredExponential([1.0, 3.0], 30.0)
    model = GPRegressor(kernel, **fixed).fit(X, y)
    row = model.explain(x).heaviest[1].row
    moved = y.copy()
    moved[row] += 1.0
    moved[100] -= 1.0  # so that the mean of y stays
    after = GPRegressor(kernel, **fixed).fit(X, moved).predict([x])[0]
    weights = model.explain(x).weights
    np.testing.assert_allclose(after - model.predict([x])[0], weights[row] - weights[100], atol=1e-9)


def test_merged_rows_share_their_weight():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, (2500, 1)).astype(float)
    y = np.sin(X[:, 0] / 5) + 0.1 * rng.standard_normal(2500)
    model = GPRegressor(SquaredExponential(5.0), hyperparameters="fixed", noise_variance=0.01).fit(X, y)
    found = adds_up(model, [12.2])
    same = found.weights[X[:, 0] == 12.0]
    np.testing.assert_allclose(same, same[0], rtol=1e-12)


def test_several_outputs_and_missing_ones():
    X, y = data()
    Y = np.stack([y, -2 * y], axis=1)
    Y[3:60:7, 1] = np.nan
    model = SPNGPRegressor(SquaredExponential(), max_leaf_size=80, hyperparameters="tied", random_state=0).fit(X, Y)
    for output in (0, 1):
        adds_up(model, [0.5, -0.2], output)
    with pytest.raises(ValueError, match=r"^output must be below 2, the number of outputs, got 2$"):
        model.explain([0.5, -0.2], output=2)
    with pytest.raises(ValueError, match=r"^x must be one row to explain, got 2$"):
        model.explain(X[:2])


def test_rows_of_a_table_are_told_by_their_values():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"km": rng.uniform(0, 9, 40).round(1), "city": rng.choice(["Graz", "Linz"], 40)})
    y = np.exp(0.2 * table["km"])
    model = GPRegressor(target="log", hyperparameters="fixed").fit(table, y)
    told = repr(model.explain(pd.DataFrame({"km": [2.5], "city": ["Wien"]})))
    assert "on the scale of the transformed target at km = 2.5, city = (missing or not seen)\n" in told
    assert "city = Graz" in told
