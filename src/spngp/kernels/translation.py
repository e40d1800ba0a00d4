"""Translation of scikit-learn's kernel objects."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spngp.kernels.base import Kernel, KernelProduct, KernelSum
from spngp.kernels.dot_product import Constant, Linear, Polynomial
from spngp.kernels.parameter import Parameter
from spngp.kernels.periodic import Periodic
from spngp.kernels.stationary import Matern, RationalQuadratic, SquaredExponential

_ONE = Parameter(1.0, fixed=True)


class Translation(NamedTuple):
    """A kernel, and the noise variance that a ``WhiteKernel`` stood for (None without one)."""

    kernel: Kernel
    noise_variance: Parameter | None


def from_sklearn(kernel: Any) -> Translation:
    """Translate a scikit-learn kernel.

    It knows ``ConstantKernel``, ``RBF``, ``Matern`` (nu = 0.5, 1.5, 2.5 or inf), ``DotProduct``, integer powers of
    ``DotProduct``, ``ExpSineSquared`` (equal for one input; see :class:`~spngp.kernels.Periodic`),
    ``RationalQuadratic``, and sums and products of these. A term of the outermost sum that is a ``WhiteKernel``, alone
    or times constants, becomes the noise variance, and several such terms add up to one.

    Values and bounds are kept, and what is fixed stays fixed. Bounds that exclude their value are widened to include
    it, since scikit-learn starts there as well. Bounds of a noise variance made of several numbers follow from theirs;
    it is fixed only if all of them are.

    Raises
    ------
    ValueError
        Names the part that has no counterpart.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    >>> kernel, noise = from_sklearn(ConstantKernel(4.0, "fixed") * RBF(2.0) + WhiteKernel(0.1))
    >>> kernel
    SquaredExponential(length_scale=2.0, variance=Parameter(4.0, fixed=True))
    >>> noise.value
    0.1
    """
    from sklearn.gaussian_process import kernels as sk  # here and below: imported only when a kernel is translated

    if not isinstance(kernel, sk.Kernel):
        raise TypeError(f"expected a scikit-learn kernel, got {kernel!r}")
    terms, noises = [], []
    for term in _flatten(kernel, sk.Sum):
        noise = _noise(term)
        if noise is None:
            terms.append(_translate(term))
        else:
            noises.append(noise)
    if not terms:
        raise ValueError(f"cannot translate {kernel!r}: it holds noise only and no kernel")
    return Translation(terms[0] if len(terms) == 1 else KernelSum(terms), _combine(noises, sum) if noises else None)


def _flatten(kernel: Any, kind: Any) -> list[Any]:
    if isinstance(kernel, kind):
        return [*_flatten(kernel.k1, kind), *_flatten(kernel.k2, kind)]
    return [kernel]


def _parameter(kernel: Any, name: str, square: bool = False) -> Parameter:
    """One of scikit-learn's hyper-parameters with its bounds; ``square`` turns a standard deviation into a variance."""
    power = 2 if square else 1
    value = np.asarray(getattr(kernel, name), dtype=float) ** power
    given = value.tolist()
    bounds = getattr(kernel, f"{name}_bounds")
    if isinstance(bounds, str) or not value.all():  # a sigma_0 of zero: the term is switched off
        return Parameter(given, fixed=True)
    ranges = np.broadcast_to(np.asarray(bounds, dtype=float) ** power, (value.size, 2))
    pairs = zip(np.minimum(ranges[:, 0], value.ravel()), np.maximum(ranges[:, 1], value.ravel()), strict=True)
    each = [(float(low), float(high)) for low, high in pairs]
    return Parameter(given, bounds=each[0] if len(set(each)) == 1 else tuple(each))


def _noise(term: Any) -> Parameter | None:
    from sklearn.gaussian_process import kernels as sk

    factors = _flatten(term, sk.Product)
    white = [factor for factor in factors if isinstance(factor, sk.WhiteKernel)]
    if not white:
        return None
    constants = [factor for factor in factors if isinstance(factor, sk.ConstantKernel)]
    if len(white) > 1 or len(white) + len(constants) != len(factors):
        raise ValueError(f"cannot translate {term!r}: a WhiteKernel can be multiplied by constants only")
    return _combine(
        [_parameter(white[0], "noise_level"), *(_parameter(c, "constant_value") for c in constants)], math.prod
    )


def _combine(parameters: Sequence[Parameter], operation: Callable[[Iterable[float]], float]) -> Parameter:
    """The sum or product of positive numbers, with the bounds that follow from theirs."""
    values = [float(np.asarray(parameter.value)) for parameter in parameters]
    total = operation(values)
    if all(parameter.fixed for parameter in parameters) or total == 0.0:
        return Parameter(total, fixed=True)
    ranges = [
        (value, value) if parameter.bounds is None else parameter.bounds
        for value, parameter in zip(values, parameters, strict=True)
    ]
    low, high = operation(low for low, _ in ranges), operation(high for _, high in ranges)
    return Parameter(total, bounds=(min(low, total), max(high, total)))


def _translate_product(factors: list[Any]) -> Kernel:
    """A constant is the variance of the first stationary kernel beside it, not a Gram matrix of its own."""
    from sklearn.gaussian_process import kernels as sk

    stationary = (sk.RBF, sk.ExpSineSquared, sk.RationalQuadratic)  # a Matern is an RBF, too
    constant = next((i for i, factor in enumerate(factors) if isinstance(factor, sk.ConstantKernel)), None)
    scaled = next((i for i, factor in enumerate(factors) if isinstance(factor, stationary)), None)
    if constant is None or scaled is None:
        return KernelProduct([_translate(factor) for factor in factors])
    variance = _parameter(factors[constant], "constant_value")
    parts = [_translate(factor, variance if i == scaled else _ONE) for i, factor in enumerate(factors) if i != constant]
    return parts[0] if len(parts) == 1 else KernelProduct(parts)


def _translate(kernel: Any, variance: Parameter = _ONE) -> Kernel:
    from sklearn.gaussian_process import kernels as sk

    match kernel:
        case sk.Sum():
            return KernelSum([_translate(part) for part in _flatten(kernel, sk.Sum)])
        case sk.Product():
            return _translate_product(_flatten(kernel, sk.Product))
        case sk.Exponentiation(kernel=sk.DotProduct() as base) if _is_power(kernel.exponent):
            offset = _parameter(base, "sigma_0", square=True)
            return Polynomial(degree=int(kernel.exponent), offset=offset, variance=_ONE)
        case sk.ConstantKernel():
            return Constant(_parameter(kernel, "constant_value"))
        case sk.Matern() if kernel.nu == math.inf:
            return SquaredExponential(_parameter(kernel, "length_scale"), variance)
        case sk.Matern() if kernel.nu in (0.5, 1.5, 2.5):
            return Matern(kernel.nu, _parameter(kernel, "length_scale"), variance)
        case sk.Matern():
            raise ValueError(f"cannot translate {kernel!r}: nu must be 0.5, 1.5, 2.5 or inf, got {kernel.nu}")
        case sk.RBF():
            return SquaredExponential(_parameter(kernel, "length_scale"), variance)
        case sk.DotProduct():
            return Linear(_ONE, bias_variance=_parameter(kernel, "sigma_0", square=True))
        case sk.ExpSineSquared():
            return Periodic(_parameter(kernel, "periodicity"), _parameter(kernel, "length_scale"), variance)
        case sk.RationalQuadratic():
            return RationalQuadratic(_parameter(kernel, "alpha"), _parameter(kernel, "length_scale"), variance)
        case sk.WhiteKernel():
            raise ValueError(f"cannot translate {kernel!r}: noise inside a nested sum or product")
        case _:
            raise ValueError(f"cannot translate {kernel!r}: {type(kernel).__name__} has no counterpart in spngp")


def _is_power(exponent: Any) -> bool:
    return float(exponent).is_integer() and exponent >= 1
