"""Names of kernels, full and short, are read off the kernel."""

import pytest

from spngp import SPNGPRegressor, datasets
from spngp.kernels import Linear, Matern, Periodic, Polynomial, RandomSlopes, RationalQuadratic, SquaredExponential
from spngp.kernels.names import full_name, labels, short_name
from spngp.network import Leaf
from spngp.plotting.names import leaf_name, short_names

NAMES = [
    (SquaredExponential(), "SquaredExponential", "SE"),
    (Matern(0.5), "Matern(0.5)", "Mat 1/2"),
    (Matern(2.5), "Matern(2.5)", "Mat 5/2"),
    (RationalQuadratic(), "RationalQuadratic", "RQ"),
    (Periodic(1.0), "Periodic", "Per"),
    (Polynomial(2), "Polynomial", "Poly"),
    (Linear(), "Linear", "Linear"),
    (RandomSlopes(), "RandomSlopes", "Slopes"),
    (
        (SquaredExponential() + Matern(1.5)) * Linear() + Periodic(1.0),
        "(SquaredExponential + Matern(1.5)) * Linear + Periodic",
        "(SE + Mat 3/2) · Linear + Per",
    ),
]


@pytest.mark.parametrize(("kernel", "full", "short"), NAMES, ids=[full for _, full, _ in NAMES])
def test_full_and_short_name(kernel, full, short):
    assert (full_name(kernel), short_name(kernel)) == (full, short)


def test_labels_tell_equal_kernels_apart():
    kernels = [SquaredExponential(), Linear(), SquaredExponential(2.0)]
    assert labels(kernels) == ["SquaredExponential #1", "Linear", "SquaredExponential #2"]
    assert labels(kernels, short_name) == ["SE #1", "Linear", "SE #2"]


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("", "Mat 3/2"),
        ("Matern(1.5)", "Mat 3/2"),
        ("Matern(1.5) #2", "Mat 3/2 #2"),
        ("a Linear trend", "a Linear trend"),
    ],
)
def test_a_label_that_is_not_the_name_of_the_kernel_stays(label, shown):
    assert leaf_name(Leaf(Matern(1.5), label=label)) == shown


def test_short_names_of_a_fitted_model_are_in_the_order_of_its_kernels():
    data = datasets.load("motorcycle")
    kernels = [Matern(1.5), SquaredExponential(), Matern(1.5, 2.0)]
    model = SPNGPRegressor(kernels, hyperparameters="fixed", random_state=0).fit(data.X, data.Y[:, 0])
    assert list(model.kernel_names_) == ["Matern(1.5) #1", "SquaredExponential", "Matern(1.5) #2"]
    assert list(short_names(model).items()) == [
        ("Matern(1.5) #1", "Mat 3/2 #1"),
        ("SquaredExponential", "SE"),
        ("Matern(1.5) #2", "Mat 3/2 #2"),
    ]
