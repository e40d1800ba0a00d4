"""Skewed rows out of core: half of all in one small region, and millions of equal ones, with the memory of the fit.

    python benchmarks/outofcore_skew.py                        # 400,000 rows with a dense half; 2,000,000 equal ones
    python benchmarks/outofcore_skew.py --sections equal --rows 4000000 --memory-limit 3

Three inputs, y = sin(4 x0) x1 + x2 / 2 and noise of .1. *dense*: half of the rows lie in a box of a thousandth of the
width of the others along each input, where y also has waves of its width. *equal*: all rows but a twentieth. The truth
is known, so predictions are compared with it, in the dense box (or at the equal rows) and elsewhere.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import reporting
from outofcore import Watch, cpu_seconds, fitted

_WIDTH = 1e-3
_AT = 0.3
_OTHERS = 0.05  # share of rows that are not equal
_AT_A_TIME = 100_000  # rows


def truth(X: np.ndarray) -> np.ndarray:
    inside = np.prod(np.clip(1.0 - np.abs(X - _AT) / _WIDTH, 0.0, 1.0), axis=1)
    return np.sin(4.0 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] + 0.5 * inside * np.sin(4.0 * (X[:, 0] - _AT) / _WIDTH)


def near(rng: np.random.Generator, n: int) -> np.ndarray:
    return _AT + _WIDTH * rng.uniform(-1.0, 1.0, (n, 3))


def rows_of(section: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Inputs: half in the box, or all but a twentieth equal, and the others everywhere, in random order."""
    X = near(rng, n) if section == "dense" else np.full((n, 3), _AT)
    others = rng.uniform(size=n) < (0.5 if section == "dense" else _OTHERS)
    return np.where(others[:, np.newaxis], rng.normal(size=(n, 3)), X)


def write_rows(path: Path, section: str, n: int, rng: np.random.Generator) -> None:
    """Some rows at a time, so that they do not stay in the memory that is measured."""
    schema = pa.schema([(name, pa.float64()) for name in ("x0", "x1", "x2", "y")])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, _AT_A_TIME):
            X = rows_of(section, min(_AT_A_TIME, n - start), rng)
            y = truth(X) + 0.1 * rng.normal(size=X.shape[0])
            writer.write_table(pa.table([*X.T, y], schema=schema))


def one(section: str, arguments: argparse.Namespace, folder: Path) -> list[object]:
    rng = np.random.default_rng(0)
    n_rows = arguments.rows or (400_000 if section == "dense" else 2_000_000)
    write_rows(folder / f"{section}.parquet", section, n_rows, rng)
    watch, cpu, started = Watch(), cpu_seconds(), time.perf_counter()
    data, output = folder / f"{section}.parquet", folder / section
    fitted(arguments.engine, data, output, arguments.jobs, arguments.memory_limit, [])
    seconds, used, peak = time.perf_counter() - started, cpu_seconds() - cpu, watch.close()
    import spngp

    model = spngp.load(output)
    errors = []
    here = near(rng, 2000) if section == "dense" else np.full((1, 3), _AT)
    for new in (here, rng.normal(size=(2000, 3))):
        mean = model.predict(pa.table({f"x{j}": new[:, j] for j in range(3)}))
        errors.append(float(np.sqrt(np.mean((mean - truth(new)) ** 2))))
    largest = max(record["rows"] for record in model.regions_)
    size = sum(path.stat().st_size for path in output.rglob("*.spngp")) / 1e6
    return [section, n_rows, largest, used, seconds, peak, size, *errors]


def main() -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("--sections", type=reporting.names, default=["dense", "equal"])
    parser.add_argument("--rows", type=int, help="by default 400,000 and 2,000,000")
    parser.add_argument("--engine", default="outofcore")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--memory-limit", type=float, default=3.0)
    parser.add_argument("--folder", help="for rows and models; by default a temporary one")
    arguments = parser.parse_args()
    head = ["rows", "largest region", "CPU s", "s", "peak GB", "model MB", "RMSE of the mean, dense", "elsewhere"]
    reporting.print_head(["", *head])
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for section in arguments.sections:
            reporting.print_row(one(section, arguments, Path(folder)))


if __name__ == "__main__":
    reporting.run(main)
