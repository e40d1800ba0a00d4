"""A model in shards in a new process: how long it takes to open, its first rows, and streamed predictions.

    python benchmarks/outofcore.py --rows 200000 --engines outofcore --folder data      # makes the model
    python benchmarks/outofcore_predict.py data/200000 --predict 1000000

CPU milliseconds, and milliseconds by the clock, of single rows with their 90 % intervals, most of which fall into
cells that were not open. Memory is that of the process, in megabytes, in each tenth of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import reporting
from outofcore import INPUTS, Watch


def timed(action: Callable[[], Any]) -> tuple[float, float]:
    """Milliseconds, of the CPU and by the clock."""
    cpu, began = time.process_time(), time.perf_counter()
    action()
    return 1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - began)


def loaded() -> None:
    import spngp.estimators
    import spngp.io
    import spngp.outofcore  # noqa: F401


def rows(n: int) -> Any:
    import pyarrow as pa

    X = np.random.default_rng(9).normal(size=(n, INPUTS))
    return pa.table({f"x{j}": X[:, j] for j in range(INPUTS)})


def answer(mixture: Any) -> dict[str, Any]:
    low, high = mixture.interval(0.9)
    return {"mean": mixture.mean, "low": low, "high": high}


def main() -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--predict", type=int, default=0, help="rows to stream")
    parser.add_argument("--batch", type=int, default=200_000)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    reporting.print_head(["", "CPU ms", "ms"])
    reporting.print_row(["load libraries", *timed(loaded)])
    import spngp
    from spngp.outofcore import predictions

    path, table = arguments.folder / "model-outofcore", rows(41)
    reporting.print_row(["open", *timed(lambda: spngp.load(path))])
    model = spngp.load(path)
    model.n_jobs = arguments.jobs
    taken = [timed(lambda i=i: model.predict(table.slice(i, 1), interval=0.9)) for i in range(41)]  # type: ignore[misc]
    reporting.print_row(["the first row", *taken[0]])
    reporting.print_row(["others, median", *np.median(taken[1:], axis=0).tolist()])
    reporting.print_row(["others, most", *np.max(taken[1:], axis=0).tolist()])
    if arguments.predict:
        watch, model = Watch(), spngp.load(path)
        model.n_jobs = arguments.jobs
        batches = (
            rows(min(arguments.batch, arguments.predict - i)) for i in range(0, arguments.predict, arguments.batch)
        )
        cpu = time.process_time()
        found = sum(part["mean"].size for part in predictions(model, batches, answer, str(arguments.folder)))
        peak = watch.close()
        print(
            f"\n{found:,} rows streamed, {time.process_time() - cpu:.0f} CPU s, {peak:.2f} GB; by tenths of the time:"
        )
        print(watch.by_tenths())


if __name__ == "__main__":
    reporting.run(main)
