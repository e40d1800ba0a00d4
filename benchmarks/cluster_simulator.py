"""A fit of many rows on many workers, simulated: measured times of cells are replayed on workers with a stated network.

    python benchmarks/cluster_simulator.py                          # a billion rows, 100 workers of one core
    python benchmarks/cluster_simulator.py --rows 200000 --workers 1 --check 61

What cells take is what ``benchmarks/outofcore_stages.py`` measured on one core; bytes follow from the formulas of
``docs/scaling.md``. A cell of the simulated fit is a measured one, drawn at random and scaled to its number of rows;
the time to see rows around also by the cube of the rows that a leaf sees, which fall with N
(``spngp.learning.defaults.overlap``). Every step moves its bytes through its worker's network and through the storage
that all share. Workers take the next step when they are free, and stages wait for each other.
"""

from __future__ import annotations

import heapq
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import reporting
from spngp.learning.defaults import overlap

MEASURED = Path(__file__).parent / "results" / "outofcore_stages.json"
ROWS_OF_A_PIECE, MOST_SAMPLED, ROWS_OF_A_CELL, MOST_CELLS, MOST_ROWS = 250_000, 1_000_000, 16_000, 2000, 500
# Seconds. Of the client: tied parameters, and four cuttings of a million rows (docs/performance.md); the shape of the
# noise, from some thirty leaves. Of a worker: reading and writing a row, comparing two leaves along an input.
TIED, CUTTING, NOISE = 6.0, 6.0, 5.0
ROW_ROUTED, PAIR_COMPARED = 1.0e-6, 4.0e-9


@dataclass(frozen=True)
class Stage:
    """A stage of a simulated fit: its steps, the seconds until the last of them is done, and the bytes moved."""

    name: str
    steps: int
    seconds: float
    moved: float


def n_cells(n_rows: int) -> int:
    """Number of cells of a fit."""
    return max(1, round(n_rows / max(0.75 * ROWS_OF_A_CELL, n_rows / MOST_CELLS)))


def own_rows(n_rows: int) -> float:
    """Mean number of rows of a region: halves of halves of a cell, until there are 500 at most."""
    cell = n_rows / n_cells(n_rows)
    return float(cell / 2 ** np.ceil(np.log2(cell / MOST_ROWS)))


def seen_rows(n_rows: int) -> float:
    """Mean number of rows that a leaf sees."""
    return own_rows(n_rows) * (1.0 + overlap(n_rows, own_rows(n_rows)))


def scheduled(durations: np.ndarray, workers: int) -> float:
    """Seconds until all steps are done, each taken by the worker that is free first."""
    free = [0.0] * workers
    for duration in durations:
        heapq.heapreplace(free, free[0] + float(duration))
    return max(free)


def simulated(
    measured: dict[str, Any], rows: int, workers: int, worker_speed: float, storage: float, kernels: int, seed: int = 0
) -> list[Stage]:
    """The stages of a fit of so many rows; speeds are in gigabytes a second, ``kernels`` those left in each region."""
    rng, stages, d = np.random.default_rng(seed), measured["stages"], measured["inputs"]
    pieces = -(-rows // ROWS_OF_A_PIECE)
    cells = n_cells(rows)
    cell, before = rows / cells, measured["rows"] / len(stages["learn_cell"]["seconds"])
    row, noted = 8 * (d + 1), 8 * (d + 1) + 24  # bytes of a row; of one with its number and its noise
    halo = stages["exchange"]["bytes"]["halos"] / stages["exchange"]["bytes"]["cells"]  # rows seen by others, per row
    leaves = rows / own_rows(rows)
    seen = seen_rows(rows) / own_rows(rows)
    shard = row * (1.0 + halo) + kernels * (8 + 8) * seen + 4 * seen  # of each expert C⁻¹y and weights; positions
    more = kernels * measured["rows"] / measured["own rows, mean"] / measured["experts"]  # kernels, of those measured

    def stage(name: str, durations: np.ndarray, bytes_of_a_step: float) -> Stage:
        speed = 1e9 * min(worker_speed, storage / min(workers, durations.size))
        return Stage(
            name,
            durations.size,
            scheduled(durations + bytes_of_a_step / speed, workers),
            bytes_of_a_step * durations.size,
        )

    def drawn(name: str, times: float) -> np.ndarray:
        return times * cell / before * rng.choice(stages[name]["seconds"], cells)

    learnt = more * (own_rows(rows) / measured["own rows, mean"]) ** 2  # n³ an expert, and rows / n experts
    wide = more * (seen_rows(rows) / measured["rows seen, mean"]) ** 3 * measured["own rows, mean"] / own_rows(rows)
    compared = PAIR_COMPARED * d * (leaves / cells) * leaves
    reading, piece = ROW_ROUTED * rows / pieces * np.ones(pieces), rows / pieces
    sample = min(rows, MOST_SAMPLED)
    return [
        stage("sample", reading, piece * row),
        Stage("ground (client)", 1, TIED + CUTTING * sample / 1e6, sample * row),
        stage("route", 2 * reading, piece * (2 * row + 8)),
        stage("learn", drawn("learn_cell", learnt), cell * (row + 8 + noted + row + 40)),
        stage("reach", drawn("measure_reach", 1.0), cell * noted),
        stage("exchange", drawn("exchange", 1.0) + compared, cell * noted * (1.0 + halo)),
        stage("see", drawn("see_around", wide), cell * (row + 40 + noted * (1.0 + halo) + shard)),
        Stage("noise, model file (client)", 1, NOISE, 0.0),
    ]


def main() -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000_000)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--worker-speed", type=float, default=1.25, help="gigabytes a second of each (10 Gbit/s)")
    parser.add_argument("--storage", type=float, default=20.0, help="gigabytes a second of all")
    parser.add_argument("--kernels", type=int, default=3, help="that are left in each region")
    parser.add_argument("--measured", default=str(MEASURED))
    parser.add_argument("--check", type=float, help="CPU seconds that a real run took, to compare with")
    arguments = parser.parse_args()
    measured = json.loads(Path(arguments.measured).read_text())
    speeds = (arguments.worker_speed, arguments.storage)
    found = simulated(measured, arguments.rows, arguments.workers, *speeds, arguments.kernels)
    told = f"{speeds[0]:g} GB/s each, {speeds[1]:g} GB/s in all"
    print(f"{arguments.rows:,} rows, {arguments.workers} workers of one core, {told}")
    print("| stage | steps | seconds | GB moved |")
    print("|---|---|---|---|")
    for stage in found:
        print(f"| {stage.name} | {stage.steps:,} | {stage.seconds:,.1f} | {stage.moved / 1e9:,.2f} |")
    total = sum(stage.seconds for stage in found)
    print(f"| all | | {total:,.0f} | {sum(stage.moved for stage in found) / 1e9:,.1f} |")
    if arguments.check:
        print(f"simulated / measured: {total / arguments.check:.2f}")


if __name__ == "__main__":
    reporting.run(main)
