"""Peak memory of ``spngp predict`` for few and for many rows: it streams, so both should need about the same.

    python benchmarks/predict_memory.py [--rows 10000 1000000]

Fits a model to synthetic rows, writes tables of the given sizes, predicts each in a process of its own with 90 %
intervals, and prints the peak resident memory of that process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import reporting


def write(path: Path, n: int, rng: np.random.Generator, target: bool) -> None:
    """A CSV table of n rows with an id, eight inputs and perhaps the target, in pieces."""
    names = [f"x{j}" for j in range(8)]
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(["id", *names, *(["y"] if target else [])]) + "\n")
        for start in range(0, n, 50_000):
            X = rng.standard_normal((min(50_000, n - start), 8))
            y = np.sin(X[:, :1]) + X[:, 1:2] + 0.1 * rng.standard_normal((len(X), 1))
            cells = np.column_stack([X, y]) if target else X
            file.writelines(
                f"row{start + i}," + ",".join(f"{v:.6g}" for v in row) + "\n" for i, row in enumerate(cells)
            )


def peak(command: list[str]) -> tuple[float, float]:
    """Peak resident memory (MB) of a process, and its seconds."""
    started = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return usage.ru_maxrss / 1e3, time.perf_counter() - started


def main(argv: list[str] | None = None) -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--train", type=int, default=3_000)
    arguments = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    spngp = [sys.executable, "-m", "spngp"]
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        write(folder / "train.csv", arguments.train, rng, target=True)
        fit = ["fit", str(folder / "train.csv"), "-t", "y", "--id", "id", "--max-leaf-size", "200", "--overlap", "1"]
        subprocess.run([*spngp, *fit, "-o", str(folder / "m.spngp")], check=True)
        print(f"{'rows':>10} {'input':>8} {'output':>8} {'peak MB':>8} {'seconds':>8}")
        for kind in ("csv", "parquet"):
            for n in arguments.rows:
                data = folder / f"new.{kind}"
                write(folder / "new.csv", n, rng, target=False)
                if kind == "parquet":
                    import pyarrow.csv
                    import pyarrow.parquet

                    pyarrow.parquet.write_table(pyarrow.csv.read_csv(folder / "new.csv"), data)
                out = str(folder / f"out.{kind}")
                command = [*spngp, "predict", str(folder / "m.spngp"), str(data), "--interval", "0.9", "-o", out]
                megabytes, seconds = peak(command)
                print(f"{n:>10,} {kind:>8} {kind:>8} {megabytes:>8.0f} {seconds:>8.1f}", flush=True)


if __name__ == "__main__":
    reporting.run(main)
