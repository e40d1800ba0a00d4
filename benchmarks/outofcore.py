"""The same rows in memory, out of core and on Dask: evidences, predictions, seconds, memory; and then more rows.

    python benchmarks/outofcore.py --rows 200000 --engines memory,outofcore,dask
    python benchmarks/outofcore.py --rows 1000000,10000000 --engines outofcore --memory-limit 3

Rows are those of ``benchmarks/scale.py``: eight inputs, length-scales and noise that differ by region. Every fit runs
in a process of its own; its memory is the sum over it and all processes that it starts, sampled five times a second.
CPU seconds count all of them. After a fit, 100,000 new rows are predicted (``--predict``) with their 90 % intervals,
streamed.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import reporting

INPUTS = 8


def written(path: Path, rows: int, seed: int) -> None:
    """Write rows to a Parquet file, some at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from spngp.datasets import regional

    writer = None
    for i, start in enumerate(range(0, rows, 250_000)):
        data = regional(min(250_000, rows - start), np.random.default_rng([seed, i]))
        table = pa.table({**{f"x{j}": data.X[:, j] for j in range(INPUTS)}, "y": data.Y[:, 0]})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


class Watch:
    """The memory of a process and its children, in gigabytes, five times a second."""

    def __init__(self) -> None:
        import psutil

        self._me, self._found, self._stop = psutil.Process(), [0.0], threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        import psutil

        while not self._stop.wait(0.2):
            total = 0
            for process in [self._me, *self._me.children(recursive=True)]:
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            self._found.append(total / 1e9)

    def close(self) -> float:
        """Stop, and tell the most."""
        self._stop.set()
        self._thread.join()
        return max(self._found)

    def by_tenths(self) -> str:
        """The most in each tenth of the time."""
        return " ".join(f"{part.max():.3f}" for part in np.array_split(self._found[1:], 10) if part.size)


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def fitted(engine: str, data: Path, output: Path, jobs: int, limit: float | None, further: list[str]) -> None:
    """Fit by the command line, so that all that it takes is counted."""
    options = ["--engine", engine, "--no-holdout", "--jobs", str(jobs), "--target", "y", "-o", str(output), "--json"]
    options += [] if limit is None else ["--memory-limit", str(limit)]
    command = [sys.executable, "-m", "spngp", "fit", str(data), *options, *further]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def one_fit(arguments: argparse.Namespace) -> None:
    """A fit and its predictions, as JSON on standard output."""
    folder = Path(arguments.folder)
    engine, output = arguments.one, folder / f"model-{arguments.one}"
    watch, cpu, started = Watch(), cpu_seconds(), time.perf_counter()
    fitted(engine, folder / "rows.parquet", output, arguments.jobs, arguments.memory_limit, arguments.options.split())
    seconds, cpu_of_fit, peak = time.perf_counter() - started, cpu_seconds() - cpu, watch.close()
    import spngp
    import spngp.estimators
    import spngp.io

    started = time.perf_counter()
    model = spngp.load(output)
    opened = time.perf_counter() - started
    watch, cpu, started = Watch(), cpu_seconds(), time.perf_counter()
    command = [sys.executable, "-m", "spngp", "predict", str(output), str(folder / "new.parquet"), "--interval", "0.9"]
    subprocess.run([*command, "-o", str(folder / f"{engine}.parquet"), "--jobs", str(arguments.jobs)], check=True)
    predicted, cpu_of_predict = time.perf_counter() - started, cpu_seconds() - cpu
    single = []
    rows = np.random.default_rng(9).normal(size=(20, INPUTS))
    table = _table(rows)
    for i in range(20):
        began = time.perf_counter()
        model.predict(table.slice(i, 1), interval=0.9)
        single.append(time.perf_counter() - began)
    print(
        json.dumps(
            {
                "engine": engine,
                "fit s": seconds,
                "fit cpu s": cpu_of_fit,
                "peak GB": peak,
                "predict s": predicted,
                "predict cpu s": cpu_of_predict,
                "predict GB": watch.close(),
                "predict GB by tenths of the time": watch.by_tenths(),
                "open ms": 1e3 * opened,
                "one row ms, median": 1e3 * float(np.median(single)),
                "one row ms, the first": 1e3 * single[0],
                "one row ms, most of the others": 1e3 * float(np.max(single[1:])),
                "evidence": model.log_evidence_,
                "model MB": sum(p.stat().st_size for p in output.rglob("*")) / 1e6 or output.stat().st_size / 1e6,
            }
        )
    )


def _table(rows: np.ndarray) -> object:
    import pyarrow as pa

    return pa.table({f"x{j}": rows[:, j] for j in range(rows.shape[1])})


def scores(folder: Path, engine: str) -> dict[str, float]:
    """RMSE and NLPD of a Gaussian with the mean and std predicted, in units of the std of y."""
    import pyarrow.parquet as pq

    found = pq.read_table(folder / f"{engine}.parquet")
    y, mean, std = (found[name].to_numpy() for name in ("y", "y_mean", "y_std"))
    inside = (y >= found["y_low0.9"].to_numpy()) & (y <= found["y_high0.9"].to_numpy())
    nlpd = np.mean(0.5 * np.log(2 * np.pi * std**2) + 0.5 * ((y - mean) / std) ** 2)
    return {
        "RMSE": float(np.sqrt(np.mean((y - mean) ** 2)) / y.std()),
        "NLPD": float(nlpd),
        "90 %": float(inside.mean()),
    }


def difference(folder: Path, engine: str, other: str) -> float:
    """Largest difference of means, standard deviations and interval borders."""
    import pyarrow.parquet as pq

    one, two = (pq.read_table(folder / f"{name}.parquet") for name in (engine, other))
    names = ("y_mean", "y_std", "y_low0.9", "y_high0.9")
    return max(float(np.abs(one[name].to_numpy() - two[name].to_numpy()).max()) for name in names)


def main() -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rows", default="200000")
    parser.add_argument("--engines", default="memory,outofcore,dask")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--predict", type=int, default=100_000)
    parser.add_argument("--memory-limit", type=float)
    parser.add_argument("--folder", help="keep rows and models here; by default a temporary folder")
    parser.add_argument("--options", default="", help="further options of spngp fit, in one text")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one_fit(arguments)
        return
    for rows in map(int, arguments.rows.split(",")):
        folder = Path(arguments.folder or tempfile.mkdtemp(prefix="spngp-bench-")) / str(rows)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "rows.parquet").exists():
            written(folder / "rows.parquet", rows, 0)
            written(folder / "new.parquet", arguments.predict, 1)
        engines, found = arguments.engines.split(","), []
        for engine in engines:
            passed = ["--one", engine, "--folder", str(folder), "--jobs", str(arguments.jobs)]
            passed += [f"--options={arguments.options}"]
            passed += [] if arguments.memory_limit is None else ["--memory-limit", str(arguments.memory_limit)]
            command = [sys.executable, __file__, *passed]
            printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()
            result = json.loads(next(line for line in printed if line.startswith(b"{")))
            result |= scores(folder, engine)
            if found:
                result["largest difference"] = difference(folder, engine, engines[0])
                result["evidence, relative"] = abs(result["evidence"] / found[0]["evidence"] - 1.0)
                result["fit cpu, ratio"] = result["fit cpu s"] / found[0]["fit cpu s"]
                result["fit s, ratio"] = result["fit s"] / found[0]["fit s"]
            found.append(result)
            print(f"{rows:,} rows, {engine}, {arguments.jobs} jobs", flush=True)
            for name, value in result.items():
                print(f"  {name}: {value:.6g}" if isinstance(value, float) else f"  {name}: {value}", flush=True)
        if not arguments.folder:
            shutil.rmtree(folder.parent)


if __name__ == "__main__":
    reporting.run(main)
