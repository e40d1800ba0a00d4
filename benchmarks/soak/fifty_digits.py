"""One exact GP in fifty digits, from the formulas alone: slow, and right wherever floating point is not.

Numbers of a problem are taken as the doubles that they are. Derivatives are central differences with a step of 1e-14,
whose error is 1e-28 or less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import mpmath
from mpmath import mpf

from spngp.kernels import Kernel

Numbers = list[Any]  # of mpmath, which has no types
Rows = list[Numbers]

DIGITS = 50
_STEP = mpf(10) ** -14


class Answer(NamedTuple):
    """What a GP says."""

    log_evidence: Any
    gradient: Numbers
    mean: Numbers
    covariance: Rows
    condition: float


def numbers(values: Any) -> Any:
    """Doubles as they are, with fifty digits."""
    return [numbers(value) for value in values] if hasattr(values, "__len__") else mpf(float(values))


def per_input(values: dict[str, Any], name: str, d: int) -> Numbers:
    return [values[name]] * d if name in values else [values[f"{name}[{i}]"] for i in range(d)]


def covariance(k: Any, values: dict[str, Any], a: Numbers, b: Numbers) -> Any:
    """k(a, b), for values of the kernel's parameters by name."""
    kind, d = type(k).__name__, len(a)
    if kind in ("KernelSum", "KernelProduct"):
        parts = []
        for i, part in enumerate(k.parts):
            of_part = {name.removeprefix(f"{i}."): v for name, v in values.items() if name.startswith(f"{i}.")}
            parts.append(covariance(part, of_part, a, b))
        return mpmath.fsum(parts) if kind == "KernelSum" else mpmath.fprod(parts)
    if kind == "Constant":
        return values["variance"]
    if kind == "Linear":
        slopes = per_input(values, "variance", d)
        return mpmath.fsum(v * x * z for v, x, z in zip(slopes, a, b, strict=True)) + values["bias_variance"]
    if kind == "Polynomial":
        inner = mpmath.fdot(a, b) + values["offset"]
        return values["variance"] * inner**k.degree
    if kind == "PiecewiseConstant":
        places = [cuts_below(k, x[k.axis]) for x in (a, b)]
        return values["variance"] * max(mpf(0), 1 - abs(places[0] - places[1]))
    scales = per_input(values, "length_scale", d)
    if kind == "Periodic":
        periods = per_input(values, "period", d)
        waves = [
            (mpmath.sin(mpmath.pi * (x - z) / p) / s) ** 2 for x, z, p, s in zip(a, b, periods, scales, strict=True)
        ]
        return values["variance"] * mpmath.exp(-2 * mpmath.fsum(waves))
    if kind == "RandomSlopes":
        return values["variance"] * (1 + mpmath.fsum(x * z / s**2 for x, z, s in zip(a, b, scales, strict=True)))
    u = mpmath.fsum(((x - z) / s) ** 2 for x, z, s in zip(a, b, scales, strict=True))
    if kind == "SquaredExponential":
        return values["variance"] * mpmath.exp(-u / 2)
    if kind == "RationalQuadratic":
        return values["variance"] * (1 + u / (2 * values["alpha"])) ** -values["alpha"]
    nu = k.nu
    r = mpmath.sqrt(2 * mpf(nu) * u)
    return values["variance"] * {0.5: mpf(1), 1.5: 1 + r, 2.5: 1 + r + r**2 / 3}[nu] * mpmath.exp(-r)


def cuts_below(k: Any, x: Any) -> Any:
    """How many cuts are below x, and in a gap how far across it x is."""
    found = mpf(0)
    for i, cut in enumerate(k.at):
        width = mpf(k.gaps[i]) if k.gaps else mpf(0)
        across = (x - mpf(cut)) / width + mpf(1) / 2 if width else mpf(int(x > cut))
        found += min(mpf(1), max(mpf(0), across))
    return found


def cholesky(C: Rows) -> Rows:
    """The lower factor; rows of growing length."""
    L: Rows = []
    for i in range(len(C)):
        row: Numbers = []
        for j in range(i):
            row.append((C[i][j] - mpmath.fdot(row, L[j][:j])) / L[j][j])
        row.append(mpmath.sqrt(C[i][i] - mpmath.fdot(row, row)))
        L.append(row)
    return L


def solved(L: Rows, b: Numbers) -> Numbers:
    """L⁻¹b."""
    z: Numbers = []
    for row, value in zip(L, b, strict=True):
        z.append((value - mpmath.fdot(row[:-1], z)) / row[-1])
    return z


def _factor(k: Any, values: dict[str, Any], noise: Numbers, X: Rows) -> Rows:
    C = [[covariance(k, values, X[i], X[j]) for j in range(i + 1)] for i in range(len(X))]
    for i, variance in enumerate(noise):
        C[i][i] += variance
    return cholesky(C)


def _log_evidence(L: Rows, y: Numbers) -> Any:
    z = solved(L, y)
    log_determinant = 2 * mpmath.fsum(mpmath.log(row[-1]) for row in L)
    return -(mpmath.fdot(z, z) + log_determinant + len(y) * mpmath.log(2 * mpmath.pi)) / 2


def exact_gp(
    k: Kernel, noise_variance: float, weights: Sequence[float], X: Any, y: Any, X_new: Any, free: Sequence[str]
) -> Answer:
    """Evidence with its gradient by the logs of the ``free`` parameters, and the latent function at new rows.

    The noise of a row of weight w has the variance noise_variance/w.
    """
    with mpmath.workdps(DIGITS):
        X, y, X_new, given = numbers(X), numbers(y), numbers(X_new), numbers(weights)
        values = dict(zip(k.parameters.names, numbers(k.parameters.values), strict=True))
        variance = numbers(noise_variance)

        def evidence_at(name: str, factor: Any) -> Any:
            changed = {**values, name: values[name] * factor} if name in values else values
            noise = variance * factor if name == "noise_variance" else variance
            return _log_evidence(_factor(k, changed, [noise / w for w in given], X), y)

        up, down = mpmath.exp(_STEP), mpmath.exp(-_STEP)
        gradient = [(evidence_at(name, up) - evidence_at(name, down)) / (2 * _STEP) for name in free]
        L = _factor(k, values, [variance / w for w in given], X)
        z = solved(L, y)
        columns = [solved(L, [covariance(k, values, x, row) for row in X]) for x in X_new]
        between = [
            [covariance(k, values, a, b) - mpmath.fdot(u, v) for b, v in zip(X_new, columns, strict=True)]
            for a, u in zip(X_new, columns, strict=True)
        ]
        means = [mpmath.fdot(z, column) for column in columns]
        return Answer(_log_evidence(L, y), gradient, means, between, _condition(L))


def _condition(L: Rows) -> float:
    """An upper bound of the condition number of C = LLᵀ, by the Frobenius norms of L and of its inverse."""
    n = len(L)
    inverse = [solved(L, [mpf(i == j) for i in range(n)]) for j in range(n)]
    norms = [mpmath.fsum(value**2 for row in of for value in row) for of in (L, inverse)]
    return float(norms[0] * norms[1])
