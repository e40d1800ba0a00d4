"""Would training in single precision pay? Learning with float32 evidence and gradients, final factors in float64.

    SPNGP_DATA=../shared/data python benchmarks/precision.py --sets energy,ccpp,kin40k

The rule set beforehand: keep it if training is at least 1.4 times as fast and NLPD within 0.005 on every set. The
evidence below is a prototype for the default kernels: full matrices, float32 from the distances to the gradient; where
a factorisation fails it falls back to double precision, and says how often. Times are seconds of CPU of the whole fit.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from scipy.linalg.lapack import spotrf, spotri, strtrs
from threadpoolctl import threadpool_limits

import accuracy
import reporting
from spngp import SPNGPRegressor, metrics
from spngp.gp import optimisation
from spngp.gp.exact import ExactGP
from spngp.kernels.base import KernelSum
from spngp.kernels.stationary import Stationary
from spngp.learning import tied_evidence

Double = optimisation.LeafEvidence
failures = [0, 0]


class Single:
    """Log evidence of one GP as a function of theta, with its gradient, in float32."""

    def __init__(self, gp: ExactGP, X: np.ndarray, y: np.ndarray, variances: None = None) -> None:
        self._double = Double(gp, X, y)
        kernel = gp.kernel
        self._parts = kernel.parts if isinstance(kernel, KernelSum) else (kernel,)
        self._possible = all(isinstance(part, Stationary) for part in self._parts)
        self._gp, self._y = gp, y.astype(np.float32)
        self._X = (X - X[len(X) // 2]).astype(np.float32)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Log evidence and gradient."""
        failures[1] += 1
        found = self._single(theta) if self._possible else None
        if found is None:
            failures[0] += 1
            return self._double(theta)
        return found

    def _single(self, theta: np.ndarray) -> tuple[float, np.ndarray] | None:
        gp, n = self._gp, self._y.size
        split = gp.kernel.parameters.n_free
        values = gp.kernel.parameters.with_theta(theta[:split]).values
        noise = float(gp._noise.with_theta(theta[split:]).values[0])
        C, kept, start = None, [], 0
        for part in self._parts:
            own = values[start : start + part.parameters.values.size].astype(np.float32)
            start += own.size
            features = np.empty_like(self._X)
            part._write_features(self._X, own, features)
            squares = np.einsum("ij,ij->i", features, features)
            u = features @ features.T
            u *= -2.0
            u += squares
            u += squares[:, np.newaxis]
            np.maximum(u, 0.0, out=u)
            spare = [np.empty(u.size, np.float32) for _ in range(part._n_spare)]
            profile = part._profile(u.reshape(-1), spare, own)
            value, slope = profile.value.reshape(n, n), profile.slope.reshape(n, n)
            kept.append((part, own, features, value, slope, profile.slope_factor))
            C = value.copy() if C is None else np.add(C, value, out=C)
        C.flat[:: n + 1] += np.float32(noise)
        L, info = spotrf(C.T, lower=1, clean=0, overwrite_a=1)
        if info or not np.isfinite(L[-1, -1]):
            return None
        z, _ = strtrs(L, self._y, lower=1)
        value = -0.5 * float(z @ z) - float(np.log(L.diagonal().astype(float)).sum()) - 0.5 * n * np.log(2 * np.pi)
        alpha, _ = strtrs(L, z, lower=1, trans=1)
        inverse, info = spotri(L, lower=1, overwrite_c=1)
        if info or not np.isfinite(value):
            return None
        lower = np.tril(inverse, -1)
        G = np.multiply.outer(alpha, alpha)
        G -= lower
        G -= lower.T
        G.flat[:: n + 1] -= inverse.diagonal()
        G *= 0.5
        gradient = []
        for part, own, features, value_matrix, slope, factor in kept:
            W = G * slope
            g = W.sum(axis=1)[:, np.newaxis] * features - W @ features
            by_scale = -2.0 * factor * 2.0 * np.einsum("ij,ij->j", features, g)
            place = part._places["length_scale"]
            by = np.zeros(own.size)
            by[place] = by_scale if isinstance(place, slice) else by_scale.sum()
            by[part._places["variance"]] = float(np.vdot(G, value_matrix))
            gradient.append(by)
        by_noise = noise * float(np.trace(G))
        whole = np.append(np.concatenate(gradient), by_noise)
        return value, whole[np.append(gp.kernel.parameters.free, gp._noise.free)]


def check() -> None:
    """The prototype is right where single precision suffices."""
    from spngp.learning import defaults

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(200)
    for kernel in defaults.default_kernels(4):
        gp = ExactGP(kernel, 0.1)
        (value, gradient), (single, by_single) = Double(gp, X, y)(gp.theta), Single(gp, X, y)(gp.theta)
        np.testing.assert_allclose(single, value, rtol=1e-4)
        np.testing.assert_allclose(by_single, gradient, rtol=0.01, atol=0.01)


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--sets", type=reporting.names, default=[*accuracy.SETS, "naval"])
    parser.add_argument("--splits", type=int, default=2)
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    check()
    compared = [f"{figure} {how}" for figure in ("NLPD", "RMSE", "cpu s") for how in ("double", "single")]
    reporting.print_head(["set", *compared, "fell back"])
    for name in arguments.sets:
        cells: list[list[float]] = []
        failures[:] = [0, 0]
        for seed, (X, y, X_test, y_test) in enumerate(accuracy.splits(name, arguments.splits)):
            row = []
            for evidence in (Double, Single):
                optimisation.LeafEvidence = tied_evidence.LeafEvidence = evidence
                start = time.process_time()
                with threadpool_limits(1, user_api="blas"):
                    model = SPNGPRegressor(random_state=seed).fit(X, y)
                seconds = time.process_time() - start
                mixture = model.predict_dist(X_test)
                row += [metrics.nlpd(mixture, y_test), metrics.rmse(mixture, y_test), seconds]
            cells.append(row)
        means = np.mean(cells, axis=0)[[0, 3, 1, 4, 2, 5]]
        shown = [f"{mean:.4f}" for mean in means[:4]] + [f"{mean:.1f}" for mean in means[4:]]
        reporting.print_row([name, *shown, f"{failures[0]} of {failures[1]}"])
    return 0


if __name__ == "__main__":
    reporting.run(main)
