"""Time, memory and accuracy of one fit on synthetic rows: the one measurement behind every figure about scaling."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from spngp import metrics
from spngp.datasets import regional
from spngp.experiments.cells import Row


def in_own_process(function: Callable[..., Row], *arguments: Any, timeout: float | None = None) -> Row:
    """Call a function in a fresh process, whose peak memory is then that of this call alone.

    Raises TimeoutError after ``timeout`` seconds, and whatever the function raises.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            return pool.apply_async(function, arguments).get(timeout)
        except multiprocessing.TimeoutError:
            raise TimeoutError(f"not done within {timeout:g} seconds") from None


def measure(model: Any, n: int, n_test: int, after_fit: Callable[[], None] | None = None) -> Row:
    """Fit a model to n rows, predict ``n_test`` others with their variances, and tell what it took.

    Rows are those of :func:`spngp.datasets.regional`: eight inputs, length-scales and noise that differ by region.
    Peak memory is that of the process so far: see :func:`in_own_process`.

    Parameters
    ----------
    model : estimator
        Has ``fit`` and ``predict_dist``.
    n, n_test : int
        Numbers of training and of test rows.
    after_fit : callable, optional
        Called between fit and prediction.

    Returns
    -------
    dict
        Seconds by the clock and of CPU, peak gigabytes, and in units of the standard deviation of y: ``RMSE``,
        ``truth`` (the RMSE against the function without noise) and ``NLPD``.
    """
    train, test = regional(n, random_state=0), regional(n_test, random_state=1)
    assert test.function is not None
    y, y_test = train.Y[:, 0], test.Y[:, 0]
    start, cpu = time.perf_counter(), time.process_time()
    model.fit(train.X, y)
    fit, fit_cpu = time.perf_counter() - start, time.process_time() - cpu
    if after_fit is not None:
        after_fit()
    start, cpu = time.perf_counter(), time.process_time()
    mixture = model.predict_dist(test.X)
    predict, predict_cpu = time.perf_counter() - start, time.process_time() - cpu
    peak, unit = peak_memory(), float(y.std())
    return {
        "rows": n,
        "fit s": fit,
        "fit cpu s": fit_cpu,
        "predict s": predict,
        "predict cpu s": predict_cpu,
        "peak GB": peak,
        "RMSE": metrics.rmse(mixture, y_test) / unit,
        "truth": metrics.rmse(mixture, test.function[:, 0]) / unit,
        "NLPD": metrics.nlpd(mixture, y_test) - float(np.log(unit)),
    }


def peak_memory() -> float:
    """Of this process, in GB; not known on Windows."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux; what getrusage tells there includes the process that started this one
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1]) * 1024.0 / 1e9
    if sys.platform == "win32":
        return float("nan")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9  # bytes on macOS


def exponent(rows: list[Row], column: str, at_least: int = 0) -> float:
    """The power of the number of rows that a column grows with, from that many rows on: slope in logarithms.

    Examples
    --------
    >>> from spngp.experiments.measuring import exponent
    >>> round(exponent([{"rows": 10, "fit s": 2.0}, {"rows": 100, "fit s": 200.0}], "fit s"), 6)
    2.0
    """
    upper = [row for row in rows if row["rows"] >= at_least]
    return float(np.polyfit(np.log([row["rows"] for row in upper]), np.log([row[column] for row in upper]), 1)[0])
