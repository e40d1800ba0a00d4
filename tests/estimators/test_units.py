"""Kernels, strategies and networks in the units of X and y: against scikit-learn, and in other units."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor

from spngp import GPRegressor, SPNGPRegressor
from spngp.committees import ProductOfExperts
from spngp.kernels import Linear, Matern, Periodic, SquaredExponential
from spngp.kernels.parameter import Identity
from spngp.structure import Compact


def benchmark(name):
    """A script of ``benchmarks/`` as a module."""
    path = Path(__file__).parents[2] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


co2 = benchmark("co2")
# Where scikit-learn's optimiser ends from the kernel as given, after some 110 evaluations: too slow for a test.
LEARNT = (10.252, 4.7788, 6.0975, 6.4073, 1.6664, -0.8406, np.log(1e5), -0.3735, -3.1423, -2.3031, -4.3693)


@pytest.fixture(scope="module")
def carbon_dioxide():
    return co2.series(1)


@pytest.fixture(scope="module")
def theirs(carbon_dioxide):
    X, y = (values[: co2.TRAINED] for values in carbon_dioxide)
    model = GaussianProcessRegressor(co2.KERNEL.clone_with_theta(np.array(LEARNT)), optimizer=None).fit(X, y - y.mean())
    _, gradient = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    assert np.abs(gradient).max() < 0.02  # a maximum, to a hundredth of a nat
    return model


@pytest.mark.parametrize("estimator", [pytest.param(SPNGPRegressor, marks=pytest.mark.long), GPRegressor])
def test_extrapolation_errs_as_scikit_learns_with_the_same_kernel(estimator, carbon_dioxide, theirs):
    X, y = carbon_dioxide
    expected = co2.errors(theirs.predict(X) + y[: co2.TRAINED].mean(), y)
    found, _ = co2.measured(estimator(co2.KERNEL, random_state=0), X, y)
    assert found == pytest.approx(expected, rel=0.05)
    assert max(expected) < 0.8  # of a series that rises by 100


def test_parameters_of_a_given_kernel_are_as_plausible_as_scikit_learns(carbon_dioxide, theirs):
    X, y = (values[: co2.TRAINED] for values in carbon_dioxide)
    model = GPRegressor(co2.KERNEL, random_state=0).fit(X, y)
    assert model.log_evidence_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=0.02)
    [record] = model.regions_
    assert record["parameters"]["1.1.period"] == 1.0
    assert record["parameters"]["3.length_scale"] == pytest.approx(np.exp(LEARNT[9]), rel=0.05)  # years
    assert record["noise_std"] ** 2 == pytest.approx(np.exp(LEARNT[10]), rel=0.3)


def plane(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    return X, 10 + 3 * np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n)


KERNEL = SquaredExponential([0.8, 3.0], 9.0) + Linear(0.5, 2.0) + Periodic([3.0, 5.0], 1.0, 0.5)


@pytest.mark.parametrize("hyperparameters", ["fixed", "tied"])
@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        (SPNGPRegressor, {"max_leaf_size": 50, "overlap": 1.0}),
        (SPNGPRegressor, {"max_leaf_size": 50, "margin": [0.4, 0.7]}),
        (SPNGPRegressor, {"structure": Compact(50, length_scales=[0.5, 4.0]), "overlap": 0.0}),
        (GPRegressor, {}),
        (ProductOfExperts, {"n_experts": 3, "assignment": "regions"}),
    ],
)
def test_a_kernel_in_other_units_is_the_same_kernel(estimator, settings, hyperparameters):
    X, y = plane()
    kernel = KERNEL if hyperparameters == "fixed" else SquaredExponential([0.8, 3.0], 9.0)
    units, unit = np.array([2.0**10, 2.0**-6]), 2.0**7  # powers of two: nothing is rounded otherwise
    given = {"hyperparameters": hyperparameters, "random_state": 0}
    model = estimator(kernel, noise_variance=0.04, **given, **settings).fit(X, y)
    if "margin" in settings:
        settings = settings | {"margin": settings["margin"] * units}
    if "structure" in settings:
        settings = settings | {"structure": Compact(50, length_scales=[0.5, 4.0] * units)}
    other = estimator(kernel.rescaled(units, unit), noise_variance=0.04 * unit**2, **given, **settings)
    other.fit(X * units, y * unit)
    X_new = plane(40, seed=1)[0]
    expected, found = model.predict_dist(X_new), other.predict_dist(X_new * units)
    np.testing.assert_allclose(found.mean / unit, expected.mean, rtol=1e-6)
    np.testing.assert_allclose(found.std / unit, expected.std, rtol=1e-6)
    assert other.log_evidence_ == pytest.approx(model.log_evidence_ - y.size * np.log(unit), rel=1e-6)


@pytest.mark.parametrize("kernels", [None, SquaredExponential([0.8, 0.8], 9.0)])
@pytest.mark.parametrize("axis", [0, 1])
def test_length_scales_of_a_strategy_are_in_the_units_of_x(kernels, axis):
    X, y = plane()
    X = X * [1.0, 1000.0]
    scales = np.where(np.arange(2) == axis, [0.5, 500.0], [1e3, 1e6])  # short along one axis: all cuts lie across it
    structure = Compact(40, length_scales=scales)
    model = SPNGPRegressor(kernels, structure=structure, hyperparameters="fixed", random_state=0).fit(X, y)
    bounded = np.isfinite([[record["low"], record["high"]] for record in model.regions_]).any(axis=(0, 1))
    assert bounded.tolist() == [axis == 0, axis == 1]


def test_regions_tell_parameters_in_the_units_of_x_and_y_and_what_they_are():
    X, y = plane()
    model = SPNGPRegressor(KERNEL, hyperparameters="fixed", noise_variance=0.04, random_state=0).fit(X, y)
    [record] = model.regions_
    assert record["parameters"] == {
        "0.length_scale[0]": 0.8,
        "0.length_scale[1]": 3.0,
        "0.variance": 9.0,
        "1.variance": 0.5,
        "1.bias_variance": 2.0,
        "2.period[0]": 3.0,
        "2.period[1]": 5.0,
        "2.length_scale": 1.0,
        "2.variance": 0.5,
    }
    identities = [Identity(**which) for which in record["identities"]]
    assert identities[1] == Identity("length_scale", input=1, part=(0,))
    assert [which.name for which in identities] == list(record["parameters"])
    assert record["noise_std"] == pytest.approx(0.2)


def test_learnt_default_kernels_are_told_in_the_units_of_x_and_y():
    X, y = plane(200)
    units, unit = np.array([2.0**10, 2.0**-6]), 2.0**7
    settings = {"hyperparameters": "tied", "random_state": 0}
    [one], [other] = (
        GPRegressor(**settings).fit(rows, outputs).regions_ for rows, outputs in ((X, y), (X * units, y * unit))
    )
    factors = {"length_scale[0]": units[0], "length_scale[1]": units[1], "variance": unit**2}
    for name, factor in factors.items():
        assert other["parameters"][name] == pytest.approx(one["parameters"][name] * factor, rel=1e-9)
    assert other["noise_std"] == pytest.approx(one["noise_std"] * unit, rel=1e-9)
    assert one["noise_std"] == pytest.approx(0.2, rel=0.3)


@pytest.mark.parametrize("kernels", [None, [Matern(1.5, [1.0, 2.0], 9.0), Linear(1.0, 1.0)]])
def test_the_network_takes_more_rows_as_the_model_does(kernels):
    X, y = plane(160)
    Y = np.column_stack([y, 1000 - 3 * y])
    Y[::9, 1] = np.nan
    settings = {"overlap": 0.0, "outliers": "trust", "noise_shape": "gaussian", "random_state": 0}
    model = SPNGPRegressor(kernels, max_leaf_size=50, **settings).fit(X[:130], Y[:130])
    posterior = model.network_.condition(X[130:], Y[130:])
    model.partial_fit(X[130:], Y[130:])
    ours, networks = model.predict_dist(X), posterior.predict_dist(X)
    np.testing.assert_allclose(networks.mean, ours.mean, rtol=1e-9)
    np.testing.assert_allclose(networks.std, ours.std, rtol=1e-9)
    assert posterior.log_evidence == pytest.approx(model.log_evidence_, rel=1e-9)
