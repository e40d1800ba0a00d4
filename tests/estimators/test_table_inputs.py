"""Tables of every kind of column, as they are, in the estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import spngp
from spngp import GPRegressor, SPNGPRegressor
from spngp.kernels import Linear, SquaredExponential


def table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    city = rng.choice(["Graz", "Linz", "Wien", "Bregenz"], n)
    km = rng.uniform(0, 3, n)
    effect = pd.Series(city).map({"Graz": 0.0, "Linz": 2.0, "Wien": -1.0, "Bregenz": 1.0}).to_numpy()
    y = effect + np.sin(2 * km) + 0.1 * rng.normal(size=n)
    gap = np.where(rng.random(n) < 0.2, np.nan, y + 0.3 * rng.normal(size=n))
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    return pd.DataFrame({"km": km, "city": city, "gap": gap, "when": days}), y


@pytest.fixture(scope="module")
def fitted():
    X, y = table(220, 0)
    return X, y, SPNGPRegressor(random_state=0).fit(X, y)


def test_a_table_is_taken_as_it_is(fitted):
    _, _, model = fitted
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["km", "city", "gap", "when"]
    assert [column.kind for column in model.columns_.columns] == ["number", "category", "number", "date"]
    X_new, y_new = table(200, 1)
    error = np.sqrt(np.mean((model.predict(X_new) - y_new) ** 2))
    assert error < 0.25  # of a standard deviation of 1.3
    assert model.X_train_.shape == (220, len(model.columns_.input_names))
    assert len(model.regions_[0]["low"]) == model.X_train_.shape[1]


def test_other_libraries_columns_in_any_order_and_inputs_as_arrays(fitted):
    _, _, model = fitted
    X_new, _ = table(30, 2)
    wanted = model.predict(X_new)
    for other in (pl.from_pandas(X_new), pa.Table.from_pandas(X_new), X_new[["when", "gap", "city", "km"]]):
        np.testing.assert_array_equal(model.predict(other), wanted)
    np.testing.assert_array_equal(model.predict(model.columns_.encode(X_new)), wanted)
    np.testing.assert_array_equal(model.predict(X_new.assign(further=1.0)), wanted)
    with pytest.raises(
        ValueError, match=r"or an array of the .* inputs that they become, got an array of numbers with 4 columns"
    ):
        model.predict(np.zeros((2, 4)))


def test_an_unseen_level_has_a_wider_interval(fitted):
    X, y, model = fitted
    X_new, _ = table(20, 3)
    _, known = model.predict(X_new, return_std=True)
    mean, unseen = model.predict(X_new.assign(city="Salzburg"), return_std=True)
    assert (unseen > 2.0 * known).all()
    # the level is between known ones: their mean, give or take the spread of levels
    assert abs(np.mean(mean) - y.mean()) < 1.0
    strict = clone(model).set_params(unknown="error", hyperparameters="fixed").fit(X, y)
    with pytest.raises(ValueError, match="'Salzburg' is none of its levels"):
        strict.predict(X_new.assign(city="Salzburg"))


def test_an_unseen_level_is_in_no_region_of_levels():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 20, 500)
    effects = 3.0 * rng.normal(size=20)
    X = pd.DataFrame({"a": rng.normal(size=500), "c": [f"level {i}" for i in level]})
    model = SPNGPRegressor(max_leaf_size=100, random_state=0).fit(X, effects[level] + 0.1 * rng.normal(size=500))
    at = model.columns_.input_names.index("c")
    assert any(np.isfinite(record["low"][at]) for record in model.regions_)  # cut by sets of levels
    assert "c in {" in " ".join(model.columns_.sides_text(model.regions_[0]["low"], model.regions_[0]["high"]))
    mean, std = model.predict(pd.DataFrame({"a": [0.0], "c": ["new"]}), return_std=True)
    assert abs(mean[0] - effects[level].mean()) < 1.0
    assert 0.6 * effects.std() < std[0] < 2.0 * effects.std()


def test_a_column_with_gaps_may_be_left_away(fitted):
    _, _, model = fitted
    X_new, _ = table(20, 4)
    without = model.predict(X_new.drop(columns="gap"))
    np.testing.assert_array_equal(without, model.predict(X_new.assign(gap=np.nan)))
    with pytest.raises(ValueError, match="X has no column 'km', which was never missing in the fit"):
        model.predict(X_new.drop(columns="km"))


def test_values_that_were_never_missing_are_averaged_over(fitted):
    _, _, model = fitted
    X_new, _ = table(20, 4)
    mean, std = model.predict(X_new, return_std=True)
    X_new.loc[3:5, "km"] = np.nan
    lacking_mean, lacking_std = model.predict(X_new, return_std=True)
    rest = np.setdiff1d(np.arange(20), [3, 4, 5])
    np.testing.assert_allclose(lacking_mean[rest], mean[rest], rtol=1e-12)
    np.testing.assert_allclose(lacking_std[rest], std[rest], rtol=1e-12)
    assert (lacking_std[3:6] > std[3:6]).all()
    donors = np.sort(model.X_train_[:, 0])[((np.arange(16) + 0.5) / 16 * 220).astype(int)]
    copies = pd.concat([X_new.iloc[[4]]] * 16).assign(km=donors)
    one = model.predict_dist(copies)
    assert lacking_mean[4] == pytest.approx(one.mean.mean())
    assert lacking_std[4] ** 2 == pytest.approx(one.var.mean() + one.mean.var())
    np.testing.assert_allclose(model.predict(X_new), lacking_mean, rtol=1e-12)
    assert np.isfinite(model.sample_y(X_new, 2)).all()
    assert np.isfinite(model.predict_noise(X_new)).all()


def test_gaps_that_a_fold_has_not_seen():
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame({"a": rng.normal(size=30), "b": rng.normal(size=30)}), rng.normal(size=30)
    X.loc[0, "a"] = np.nan
    assert np.isfinite(cross_val_score(SPNGPRegressor(hyperparameters="fixed"), X, y, cv=3)).all()


def test_rows_with_gaps_have_a_region_where_their_noise_is_another():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(900, 2)), columns=["a", "b"])
    y = (3.0 * X["a"] + np.sin(X["b"])).to_numpy() + 0.1 * rng.normal(size=900)
    X.loc[rng.random(900) < 0.15, "a"] = np.nan
    model = SPNGPRegressor(max_leaf_size=200, random_state=0).fit(X[:600], y[:600])
    missing = model.columns_.input_names.index("a missing")
    assert any(record["low"][missing] == 0.5 for record in model.regions_)
    noise = model.predict_noise(X[600:])
    lacking = X[600:]["a"].isna().to_numpy()
    assert noise[lacking].min() > 5.0 * noise[~lacking].max()
    low, high = model.predict_dist(X[600:]).interval(0.9)
    holds = (y[600:] >= low) & (y[600:] <= high)
    assert holds[lacking].mean() > 0.75


def test_saved_with_the_model(fitted, tmp_path):
    _, _, model = fitted
    model.save(tmp_path / "m.spngp")
    loaded = spngp.load(tmp_path / "m.spngp")
    assert loaded.columns_ == model.columns_
    X_new, _ = table(20, 5)
    np.testing.assert_array_equal(loaded.predict(X_new), model.predict(X_new))


def test_updates_take_tables(fitted):
    X, y, _ = fitted
    model = SPNGPRegressor(hyperparameters="fixed", random_state=0).fit(X[:150], y[:150])
    columns = model.columns_
    model.partial_fit(X[150:], y[150:])
    assert model.columns_ is columns
    assert model.X_train_.shape[0] == 220
    with pytest.raises(ValueError, match="input 'km', row 1 has no value, and none was missing in the fit; leave"):
        model.partial_fit(X[:3].assign(km=[1.0, None, 2.0]), y[:3])


def test_an_ignored_column_among_numbers_is_no_input(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"row": np.arange(60.0), "a": rng.normal(size=60), "b": rng.normal(size=60)})
    y = X["a"] + 0.1 * rng.normal(size=60)
    model = SPNGPRegressor(columns={"row": "ignored"}, hyperparameters="fixed", random_state=0).fit(X, y)
    without = SPNGPRegressor(hyperparameters="fixed", random_state=0).fit(X[["a", "b"]], y)
    assert model.n_features_in_ == 3
    assert model.X_train_.shape == (60, 2)
    for given in (X, X.assign(row=-1e9), X[["b", "a"]], X[["a", "b"]].to_numpy()):
        np.testing.assert_array_equal(model.predict(given), without.predict(X[["a", "b"]]))
    with pytest.raises(ValueError, match="got an array of numbers with 3 columns"):
        model.predict(X.to_numpy())
    model.save(tmp_path / "m.spngp")
    np.testing.assert_array_equal(spngp.load(tmp_path / "m.spngp").predict(X), model.predict(X))
    model.partial_fit(X[:2], y[:2])
    assert model.X_train_.shape == (62, 2)


def test_numbers_in_a_table_are_as_in_an_array():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    plain = SPNGPRegressor(random_state=0).fit(X, y)
    tabled = SPNGPRegressor(random_state=0).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    np.testing.assert_array_equal(plain.predict(X), tabled.predict(pd.DataFrame(X, columns=["a", "b"])))
    assert plain.columns_.names == ["x0", "x1"]
    assert plain.columns_.is_plain
    assert tabled.columns_.names == ["a", "b"]


def test_pipelines_and_cross_validation(fitted):
    X, y, _ = fitted
    model = SPNGPRegressor(hyperparameters="fixed", random_state=0)
    assert np.isfinite(cross_val_score(model, X, y, cv=3)).all()
    imputed = make_pipeline(SimpleImputer(strategy="most_frequent"), model).set_output(transform="pandas")
    without_dates = X.drop(columns="when")  # imputers of scikit-learn 1.6 do not take them
    assert np.isfinite(imputed.fit(without_dates, y).predict(without_dates)).all()


def test_given_kernels():
    X, y = table(60, 6)
    X = X[["km", "city"]]
    model = GPRegressor(SquaredExponential([1.0, 1.0]), hyperparameters="fixed").fit(X, y)
    assert model.network_.kernel.levels == (0, 8)
    with pytest.raises(ValueError, match="need kernels of SquaredExponential, Matern, RandomSlopes and Constant"):
        GPRegressor(Linear()).fit(X, y)


def test_the_target_among_the_features(fitted):
    X, y, _ = fitted
    with pytest.raises(ValueError, match="column 'cost' of X is the target itself; leave it out of X"):
        SPNGPRegressor().fit(X.assign(cost=y), y)


def test_sparse_matrices():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.5), rng.normal(size=40)
    model = GPRegressor(hyperparameters="fixed")
    wanted = model.fit(X, y).predict(X)
    np.testing.assert_array_equal(model.fit(sparse.csr_matrix(X), y).predict(sparse.csr_array(X)), wanted)
    with pytest.raises(ValueError, match="X is a sparse matrix of 20,000 x 5,000 cells, made dense up to 10,000,000"):
        model.fit(sparse.csr_matrix((20_000, 5_000)), np.zeros(20_000))
    with pytest.raises(ValueError, match="X has 1,000,000 columns, 10,000 at most can be learnt from"):
        model.fit(sparse.csr_matrix((3, 1_000_000)), np.zeros(3))
    with pytest.raises(ValueError, match="X has 20,000 columns"):
        model.fit(pd.DataFrame(np.zeros((3, 20_000))), np.zeros(3))


def test_columns_of_an_array_cannot_be_declared():
    with pytest.raises(ValueError, match="columns describes a table, but X is a ndarray"):
        SPNGPRegressor(columns={"a": "category"}).fit(np.zeros((3, 1)), np.zeros(3))
