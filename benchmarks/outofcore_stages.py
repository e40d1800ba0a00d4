"""What every step of a fit out of core takes: CPU seconds of each piece and cell, rows, bytes read and written.

    python benchmarks/outofcore_stages.py --rows 100000 --save benchmarks/results/outofcore_stages.json

The figures are the ground of ``docs/scaling.md`` and of ``benchmarks/cluster_simulator.py``.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import reporting
from outofcore import INPUTS, written
from spngp import SPNGPRegressor
from spngp.outofcore import Job, fit


class Recorder:
    """One thread that does the steps and notes the seconds of each, and what is on the disk after all of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.stages: dict[str, dict[str, Any]] = {}
        self._since = time.process_time()

    def map(self, step: Any, items: Any, advance: Any) -> list[Any]:
        """All steps, one after the other."""
        inner = step.args[1]
        name = getattr(inner, "__name__", "take_sample")
        alone = time.process_time() - self._since  # what the client did since the last step
        found, seconds = [], []
        for item in items:
            began = time.process_time()
            found.append(step(item))
            seconds.append(time.process_time() - began)
        sizes = {path.name: _bytes(path) for path in self._directory.iterdir() if path.is_dir()}
        self.stages[name] = {"client s": alone, "seconds": seconds, "bytes": sizes}
        self._since = time.process_time()
        return found


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def main() -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--sampled", type=int, default=1_000_000)
    parser.add_argument("--save")
    arguments = parser.parse_args()
    import pyarrow.dataset as ds

    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.parquet"
        written(rows, arguments.rows, 0)
        job = Job(
            dataset=ds.dataset(rows),
            inputs=[f"x{j}" for j in range(INPUTS)],
            targets=["y"],
            output=Path(folder) / "model",
            most_sampled=arguments.sampled,
        )
        recorder, began = Recorder(job.directory), time.process_time()
        model = fit(SPNGPRegressor(random_state=0), job, recorder)
        whole = time.process_time() - began
        leaves = model.regions_
        seen = [record["rows"] + record["context_rows"] for record in leaves]
        own = [record["rows"] for record in leaves]
        result = {
            "rows": arguments.rows,
            "inputs": INPUTS,
            "bytes of the table": rows.stat().st_size,
            "bytes of the model": _bytes(job.output),
            "whole s": whole,
            "experts": len(leaves),
            "own rows, mean": sum(own) / len(own),
            "rows seen, mean": sum(seen) / len(seen),
            "flops of own factors": sum(n**3 / 3 for n in own),
            "flops of seen factors": sum(n**3 / 3 for n in seen),
            "stages": recorder.stages,
        }
    for name, value in result.items():
        if name != "stages":
            print(f"{name}: {value:.6g}")
    for name, stage in recorder.stages.items():
        total, count = sum(stage["seconds"]), len(stage["seconds"])
        sizes = ", ".join(f"{part} {size / 1e6:.1f} MB" for part, size in stage["bytes"].items())
        steps = f"{count} steps, {total:.2f} s, most {max(stage['seconds']):.2f} s"
        print(f"{name}: client before {stage['client s']:.2f} s, {steps}; {sizes}")
    if arguments.save:
        Path(arguments.save).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    reporting.run(main)
