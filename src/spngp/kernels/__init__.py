"""Covariance functions, with the derivatives that training needs."""

from spngp.kernels.base import Kernel, KernelProduct, KernelSum
from spngp.kernels.dot_product import Constant, Linear, Polynomial
from spngp.kernels.parameter import Parameter
from spngp.kernels.periodic import Periodic
from spngp.kernels.piecewise_constant import PiecewiseConstant
from spngp.kernels.random_slopes import RandomSlopes
from spngp.kernels.stationary import Matern, RationalQuadratic, SquaredExponential
from spngp.kernels.step import Step
from spngp.kernels.translation import from_sklearn

__all__ = [
    "Constant",
    "Kernel",
    "KernelProduct",
    "KernelSum",
    "Linear",
    "Matern",
    "Parameter",
    "Periodic",
    "PiecewiseConstant",
    "Polynomial",
    "RandomSlopes",
    "RationalQuadratic",
    "SquaredExponential",
    "Step",
    "from_sklearn",
]
