"""Units of X and y from the smallest to the largest: the same model, or one clear line at once."""

import numpy as np
import pytest
from sklearn.base import clone

from spngp import GPRegressor, SPNGPRegressor
from spngp.committees import ProductOfExperts
from spngp.kernels import SquaredExponential

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (60, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(60)
MODELS = [SPNGPRegressor(random_state=0), GPRegressor(random_state=0), ProductOfExperts(random_state=0)]


def moments(model, X, y, size=1.0):
    """Mean, standard deviation and 90 % interval of a fitted model, in units of ``size``."""
    mixture = model.fit(X, y).predict_dist(X)
    return np.stack([mixture.mean, mixture.std, *mixture.interval(0.9)]) / size


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("power", [-497, -300, 300, 501])  # from 2e-150 to 7e150
def test_units_of_y_make_no_difference(model, power):
    np.testing.assert_allclose(moments(model, X, Y * 2.0**power, 2.0**power), moments(model, X, Y), rtol=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("powers", [(-960, 0), (-664, 664), (0, 990), (-960, 990)])  # 2**664 is 8e199
def test_units_of_inputs_make_no_difference(model, powers):
    np.testing.assert_array_equal(moments(model, X * 2.0 ** np.array(powers), Y), moments(model, X, Y))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-155, 1e-151, 1e152, 1e155, 1e160, 1e200, 1e300])
def test_a_spread_of_y_whose_square_is_no_number_is_refused(model, size):
    spread = f"{np.std(Y) * size:.3g}".replace("+", r"\+")
    with pytest.raises(ValueError, match=rf"^y must have a spread between 1e-150 and 1e151, got {spread}; rescale y$"):
        model.fit(X, Y * size)


def test_which_output_is_out_of_range_is_told():
    with pytest.raises(ValueError, match=r"^y must have a spread between 1e-150 and 1e151, got .*e\+199 in output 1; "):
        SPNGPRegressor().fit(X, np.column_stack([Y, 1e200 * Y]))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("value", [1e152, -1e300, 1.7e308])
def test_constant_outputs_that_are_too_large_are_refused(model, value):
    with pytest.raises(ValueError, match=r"^y must be about 1e151 in size at most, got .*; rescale y$"):
        model.fit(X, np.full(60, value))


@pytest.mark.parametrize("value", [0.0, 1e-300, -1e-200, 3.0, 1e20, -1e151])
def test_other_constant_outputs_are_predicted(value):
    model = SPNGPRegressor(random_state=0).fit(X, np.full(60, value))
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, value, rtol=1e-12, atol=1e-12)
    assert np.isfinite(std).all()
    assert (std > 0).all()
    model.partial_fit(X[:3], np.full(3, value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_inputs_close_to_the_largest_float_are_refused(model):
    huge = X.copy()
    huge[:, 1] = np.where(np.arange(60) % 7, 1.7e308, -1.7e308)
    with pytest.raises(ValueError, match=r"^X must be at most 1e300 in size, got -?1\.7e\+308 in column 1; rescale X$"):
        model.fit(huge, Y)


GIVEN = [type(model)(SquaredExponential(), hyperparameters="fixed", random_state=0) for model in MODELS]


@pytest.mark.parametrize("model", GIVEN, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("power", [-460, 0, 460])  # 2**460 is 3e138
def test_given_kernels_take_inputs_of_nearly_any_size(model, power):
    size = 2.0**power
    name = "kernels" if isinstance(model, SPNGPRegressor) else "kernel"
    model = clone(model).set_params(**{name: SquaredExponential([1.0, size])})
    expected = moments(clone(model).set_params(**{name: SquaredExponential()}), X, Y)
    np.testing.assert_allclose(moments(model, X * [1.0, size], Y), expected, rtol=1e-9)


@pytest.mark.parametrize("model", GIVEN, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("size", [1e-200, 1e-150, 1e150, 1e200])
def test_inputs_whose_squares_are_no_numbers_are_refused_with_given_kernels(model, size):
    spread = f"{np.std(X[:, 1]) * size:.3g}".replace("+", r"\+")
    message = rf"^X must have spreads between 1e-140 and 1e140 with given kernels, got {spread} in column 1; rescale X$"
    with pytest.raises(ValueError, match=message):
        model.fit(X * [1.0, size], Y)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_inputs_too_far_from_those_learnt_from_are_refused(model):
    model.fit(X * [1.0, 1e-200], Y)
    with pytest.raises(ValueError, match=r"^X holds 1e\+200 in row 1, column 1, which is too far from the rows"):
        model.predict([[0.0, 0.0], [0.0, 1e200]])


def test_a_value_out_of_proportion_among_the_smallest_floats():
    tiny = X * 1e-310
    tiny[7, 1] = 1e-307
    assert np.isfinite(SPNGPRegressor(random_state=0).fit(tiny, Y).predict(tiny)).all()
