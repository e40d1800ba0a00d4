"""Kernels in the units of the user against scikit-learn: a series like the carbon dioxide of Mauna Loa, extrapolated.

    python benchmarks/co2.py [--seeds 3]

Sixty years of monthly values have a rising trend, a season of one year, waves of two to nine years, weather that lasts
a month or two, and noise. ``SPNGPRegressor``, ``GPRegressor`` and scikit-learn's ``GaussianProcessRegressor`` learn one
and the same scikit-learn kernel, in years and in the units of y, from the first fifty years; scikit-learn gets y minus
its mean, which ours subtract themselves. Printed are the RMSE of the next two and ten years, the log evidence, and
seconds of processor time (the machine may be shared) to fit and predict on one BLAS thread. Exit code 1 if an RMSE is
more than 5 % above scikit-learn's, or if ours take more than a tenth of its time, in the median over the seeds.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, RationalQuadratic, WhiteKernel
from threadpoolctl import threadpool_limits

import reporting
from spngp import GPRegressor, SPNGPRegressor

MONTHS, TRAINED = 720, 600
HORIZONS = {"2 years": 24, "10 years": 120}
MOST_RMSE, MOST_TIME = 1.05, 0.1  # times scikit-learn's
KERNEL = (
    50.0**2 * RBF(50.0)
    + 2.0**2 * RBF(100.0) * ExpSineSquared(1.0, 1.0, periodicity_bounds="fixed")
    + 0.5**2 * RationalQuadratic(1.0, 1.0)
    + 0.1**2 * RBF(0.1)
    + WhiteKernel(0.01)
)


def series(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Years, of shape (months, 1), and values."""
    rng = np.random.default_rng(seed)
    years = 1960 + np.arange(MONTHS) / 12
    share = np.linspace(0.0, 1.0, MONTHS)
    trend = 315 + 60 * share + 40 * share**2
    season = (3 + 0.5 * share) * np.sin(2 * np.pi * years) + 0.8 * np.cos(4 * np.pi * years)
    phases = rng.uniform(0, 2 * np.pi, 4)
    waves = 0.4 * np.sin(2 * np.pi * years[:, np.newaxis] / [2.3, 3.7, 5.1, 9.1] + phases).sum(axis=1)
    weather = 0.25 * np.convolve(rng.standard_normal(MONTHS + 2), [0.5, 0.7, 0.5], "valid")
    return years[:, np.newaxis], trend + season + waves + weather + 0.1 * rng.standard_normal(MONTHS)


def errors(predicted: np.ndarray, y: np.ndarray) -> list[float]:
    """RMSE of the months after those learnt from, for each horizon."""
    later = [slice(TRAINED, TRAINED + months) for months in HORIZONS.values()]
    return [float(np.sqrt(np.mean((predicted[rows] - y[rows]) ** 2))) for rows in later]


def measured(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[list[float], float]:
    """Errors, and seconds of processor time to fit and predict."""
    centre = y[:TRAINED].mean() if isinstance(model, GaussianProcessRegressor) else 0.0
    start = time.process_time()
    predicted = model.fit(X[:TRAINED], y[:TRAINED] - centre).predict(X) + centre
    return errors(predicted, y), time.process_time() - start


def main() -> int:
    warnings.simplefilter("ignore")  # scikit-learn's, about parameters at their bounds
    with threadpool_limits(1):
        return compare()


def compare() -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    ratios: dict[str, list[list[float]]] = {"SPNGPRegressor": [], "GPRegressor": []}
    print(f"{'seed':<6}{'model':<26}{''.join(f'{name:>10}' for name in HORIZONS)}{'evidence':>11}{'seconds':>9}")
    for seed in range(options.seeds):
        X, y = series(seed)
        theirs = GaussianProcessRegressor(KERNEL)
        rmse, seconds = measured(theirs, X, y)
        rows = [("GaussianProcessRegressor", rmse, theirs.log_marginal_likelihood_value_, seconds)]
        for ours in (SPNGPRegressor(KERNEL, random_state=0), GPRegressor(KERNEL, random_state=0)):
            found, taken = measured(ours, X, y)
            name = type(ours).__name__
            rows.append((name, found, ours.log_evidence_, taken))
            ratios[name].append([*np.divide(found, rmse), taken / seconds])
        for name, found, evidence, taken in rows:
            figures = "".join(f"{value:>10.4f}" for value in found)
            print(f"{seed:<6}{name:<26}{figures}{evidence:>11.3f}{taken:>9.2f}", flush=True)
    missed = False
    for model, found in ratios.items():
        *rmse, taken = np.median(found, axis=0).tolist()
        missed |= max(rmse) > MOST_RMSE or taken > MOST_TIME
        shown = ", ".join(
            f"{value:.3f} of the RMSE at {horizon}" for value, horizon in zip(rmse, HORIZONS, strict=True)
        )
        print(f"{model}: {shown}, {taken:.3f} of the time (at most {MOST_RMSE:g} and {MOST_TIME:g})")
    return int(missed)


if __name__ == "__main__":
    reporting.run(main)
