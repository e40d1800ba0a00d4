"""A fit of many rows on many workers, simulated: measured step times are replayed on workers with a stated network.

    python benchmarks/cluster_simulator.py                                   # a billion rows, 100 workers
    python benchmarks/cluster_simulator.py --rows 10000000 --workers 1 --check 2600

Steps are those that ``benchmarks/outofcore_stages.py`` measured, on one core. A step of a larger fit takes the time of
one that was measured, drawn at random, plus the time that its bytes take: through the worker's own network, and through
the storage that all share. Cells have about the same number of rows however many rows there are, so their number grows
and not their time, except that leaves of larger sets see fewer rows (``spngp.learning.defaults.overlap``) and that
every cell compares itself with all leaves when halos are exchanged. Workers take the next step when they are free;
stages wait for each other. What the client does alone is that of its sample of a million rows.
"""

from __future__ import annotations

import argparse
import heapq
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spngp.learning.defaults import overlap

MEASURED = Path(__file__).parent / "results" / "outofcore_stages.json"
ROWS_OF_A_PIECE = 250_000
ROW = 8  # bytes of a number


@dataclass(frozen=True)
class Network:
    """Gigabytes a second: of a worker's own connection, and of the storage that all workers share."""

    worker: float
    storage: float

    def seconds(self, n_bytes: float, workers: int) -> float:
        """For a step of one of many workers that do the same."""
        return n_bytes / (1e9 * min(self.worker, self.storage / workers))


@dataclass(frozen=True)
class Stage:
    """A stage of a simulated fit."""

    name: str
    steps: int
    seconds: float
    bytes_moved: float


def scheduled(durations: np.ndarray, workers: int) -> float:
    """Seconds until all steps are done, each taken by the worker that is free first."""
    free = [0.0] * workers
    for duration in durations:
        heapq.heapreplace(free, free[0] + float(duration))
    return max(free)


def simulated(measured: dict, rows: int, workers: int, network: Network, seed: int = 0) -> list[Stage]:
    """The stages of a fit of so many rows."""
    rng = np.random.default_rng(seed)
    stages, d = measured["stages"], measured["inputs"]
    n_cells = len(stages["learn_cell"]["seconds"])
    rows_of_a_cell = measured["rows"] / n_cells
    cells, pieces = max(1, round(rows / rows_of_a_cell)), -(-rows // ROWS_OF_A_PIECE)
    own = measured["own rows, mean"]
    before, now = (own * (1.0 + overlap(n, own)) for n in (measured["rows"], rows))
    factor = (now / before) ** 3
    regions = measured["experts"] / 2 * rows / measured["rows"]
    bytes_of_a_row = ROW * (d + 1)
    halo = measured["stages"]["exchange"]["bytes"]["halos"] / measured["rows"]  # bytes per row, noise included
    per_piece = rows / pieces
    scale = per_piece / (measured["rows"] / len(stages["route"]["seconds"]))

    def drawn(name: str, count: int, times: float = 1.0) -> np.ndarray:
        return times * rng.choice(stages[name]["seconds"], count)

    def stage(name: str, durations: np.ndarray, bytes_of_a_step: float) -> Stage:
        moving = network.seconds(bytes_of_a_step, min(workers, durations.size))
        return Stage(name, durations.size, scheduled(durations + moving, workers), bytes_of_a_step * durations.size)

    cell = rows_of_a_cell
    grown = regions / (measured["experts"] / 2)  # comparisons of a cell's leaves with all leaves
    client = min(1.0, 1_000_000 / measured["rows"]) if rows > measured["rows"] else rows / measured["rows"]
    laid = stages["route"]["client s"] * max(client, min(rows, 1_000_000) / measured["rows"]) ** 0.5
    compared = 8e-9 * d * regions * (regions / cells) * np.ones(cells)  # seconds of numpy per pair of leaves
    return [
        stage("sample", drawn("take_sample", pieces, scale), per_piece * bytes_of_a_row),
        Stage("ground (client)", 1, laid, 1_000_000 * bytes_of_a_row),
        stage("route", drawn("route", pieces, scale), 2 * per_piece * (bytes_of_a_row + ROW)),
        stage("learn", drawn("learn_cell", cells), cell * (2 * (bytes_of_a_row + ROW) + 3 * bytes_of_a_row)),
        stage("reach", drawn("measure_reach", cells), cell * bytes_of_a_row),
        stage("exchange", drawn("exchange", cells) + (compared if grown > 4 else 0.0), cell * (bytes_of_a_row + halo)),
        stage("see", drawn("see_around", cells, factor), cell * (4 * bytes_of_a_row + halo)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000_000)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--worker-network", type=float, default=1.25, help="gigabytes a second (10 Gbit/s)")
    parser.add_argument("--storage", type=float, default=20.0, help="gigabytes a second in all")
    parser.add_argument("--measured", default=str(MEASURED))
    parser.add_argument("--check", type=float, help="seconds that a real run took, to compare with")
    arguments = parser.parse_args()
    measured = json.loads(Path(arguments.measured).read_text())
    network = Network(arguments.worker_network, arguments.storage)
    found = simulated(measured, arguments.rows, arguments.workers, network)
    speeds = f"{network.worker:g} GB/s each, {network.storage:g} GB/s in all"
    print(f"{arguments.rows:,} rows, {arguments.workers} workers of one core, {speeds}")
    print("| stage | steps | seconds | GB moved |")
    print("|---|---|---|---|")
    for stage in found:
        print(f"| {stage.name} | {stage.steps:,} | {stage.seconds:,.1f} | {stage.bytes_moved / 1e9:,.1f} |")
    total = sum(stage.seconds for stage in found)
    print(f"| all | | {total:,.0f} | {sum(stage.bytes_moved for stage in found) / 1e9:,.0f} |")
    if arguments.check:
        print(f"simulated / measured: {total / arguments.check:.2f}")


if __name__ == "__main__":
    main()
