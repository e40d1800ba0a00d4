"""Saved models, without factors and with: size of the file, CPU seconds to save, to open and to predict, equal bits.

    python benchmarks/saved_models.py [--models "8 rows a leaf"]

3,000 rows of 11 inputs and Kin40K with defaults, and as many small experts as a model of a million rows has. Opening,
and then the means and standard deviations of the first row and of the first 1,000, are timed in fresh processes,
imports apart, the best of five; the file is in the system's cache. Needs $SPNGP_DATA.
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
from spngp import SPNGPRegressor, datasets, load

COLUMNS = (
    *("model", "experts", "arrays MB", "file MB", "ratio", "save s", "open s", "and first row s", "and 1,000 s"),
    "equal bits",
)

_OPEN = """
import sys, time
import numpy as np
import spngp.io, spngp.estimators
rows = np.load(sys.argv[2])
taken = []
for _ in range(int(sys.argv[3])):
    parts = []
    for asked in (1, 1_000):
        started = time.process_time()
        model = spngp.io.load(sys.argv[1])
        opened = time.process_time()
        model.predict(rows[:asked], return_std=True)
        parts += [opened - started, time.process_time() - started]
    taken.append(parts)
opening, first, _, thousand = np.min(taken, axis=0)
print(opening, first, thousand)
"""


def array_bytes(model: SPNGPRegressor) -> int:
    """Bytes of all arrays that the experts hold, each counted once."""
    arrays = {}
    for network in (model._learnt.own, model._learnt.network):
        for leaf, _, _ in network.responsibilities():
            held = [leaf.gp._X, leaf.gp._y, leaf.gp._alpha]
            held += [] if leaf.gp._L is None else [leaf.gp._L.array]
            arrays.update({id(array): array.nbytes for array in held})
    return sum(arrays.values()) + model._learnt.X.nbytes + model._learnt.Y.nbytes


ROWS = 3_000  # of 11 inputs
REPEATS = 5


def main(arguments: list[str] | None = None) -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("--models", type=reporting.names, help="whose names hold one of these words")
    words = parser.parse_args(arguments).models or [""]
    train, test = datasets.load("kin40k").classic_split()
    kin40k = train.X, train.Y[:, 0], test.X[:2_000]
    rng = np.random.default_rng(0)
    friedman = rng.uniform(0, 1, (5_000, 11))
    wave = 10 * np.sin(np.pi * friedman[:, 0] * friedman[:, 1]) + 20 * (friedman[:, 2] - 0.5) ** 2
    outputs = wave + 10 * friedman[:, 3] + 5 * friedman[:, 4] + rng.standard_normal(5_000)
    small = SPNGPRegressor(max_leaf_size=8, overlap=1.0, hyperparameters="fixed")
    cases = {
        f"{ROWS:,} x 11, defaults": (SPNGPRegressor(random_state=0), friedman[:ROWS], outputs[:ROWS], friedman[3_000:]),
        "Kin40K, defaults": (SPNGPRegressor(random_state=0), *kin40k),
        "8 rows a leaf": (small, *kin40k),
    }
    reporting.print_head(COLUMNS)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "m.spngp"
        for name, (model, X, y, rows) in cases.items():
            if not any(word in name for word in words):
                continue
            np.save(Path(directory) / "rows.npy", rows)
            model.fit(X, y)
            for with_factors in (False, True):
                told = [name + ", with factors" * with_factors, len(model.regions_)]
                held = array_bytes(model)
                started = time.process_time()
                model.save(path, with_factors=with_factors)
                saving = time.process_time() - started
                command = [sys.executable, "-c", _OPEN, str(path), str(Path(directory) / "rows.npy"), str(REPEATS)]
                printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                answers = [one.predict(rows, return_std=True) for one in (model, load(path))]
                equal = all(np.array_equal(a, b) for a, b in zip(*answers, strict=True))
                size = os.path.getsize(path)
                sizes = [f"{held / 1e6:.1f}", f"{size / 1e6:.2f}", f"{size / held:.3f}"]
                seconds = [f"{value:.2f}" for value in (saving, *map(float, printed.split()))]
                reporting.print_row([*told, *sizes, *seconds, "yes" if equal else "NO"])


if __name__ == "__main__":
    reporting.run(main)
