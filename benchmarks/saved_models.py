"""Saved models: size of the file against its arrays, seconds to save, to open and to predict first, and equal bits.

    python benchmarks/saved_models.py

Kin40K with defaults, and as many small experts as a model of a million rows has. Opening and the first prediction are
timed in a fresh process, imports apart, best of five; the file is in the system's cache. Needs $SPNGP_DATA.
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
    *("model", "experts", "arrays MB", "file MB", "ratio", "save s", "open s", "open and first row s", "equal bits"),
)

_OPEN = """
import sys, time
import numpy as np
import spngp.io, spngp.estimators
rows = np.load(sys.argv[2])
taken = []
for _ in range(5):
    started = time.perf_counter()
    model = spngp.io.load(sys.argv[1])
    opened = time.perf_counter()
    model.predict(rows[:1], return_std=True)
    taken.append((time.perf_counter() - started, opened - started))
print(min(taken)[1], min(taken)[0])
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


def main() -> None:
    train, test = datasets.load("kin40k").classic_split()
    X, y, rows = train.X, train.Y[:, 0], test.X[:2_000]
    cases = {
        "Kin40K, defaults": SPNGPRegressor(random_state=0, n_jobs=-1),
        "8 rows a leaf": SPNGPRegressor(max_leaf_size=8, overlap=1.0, hyperparameters="fixed", n_jobs=-1),
    }
    reporting.print_head(COLUMNS)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "m.spngp"
        np.save(Path(directory) / "rows.npy", rows)
        for name, model in cases.items():
            model.fit(X, y)
            held = array_bytes(model)
            started = time.perf_counter()
            model.save(path)
            saving = time.perf_counter() - started
            command = [sys.executable, "-c", _OPEN, str(path), str(Path(directory) / "rows.npy")]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            opening, first = map(float, printed.split())
            pairs = zip(model.predict(rows, return_std=True), load(path).predict(rows, return_std=True), strict=True)
            equal = all(np.array_equal(a, b) for a, b in pairs)
            size = os.path.getsize(path)
            sizes = [f"{held / 1e6:.1f}", f"{size / 1e6:.1f}", f"{size / held:.2f}"]
            seconds = [f"{saving:.1f}", f"{opening:.2f}", f"{first:.2f}"]
            reporting.print_row([name, len(model.regions_), *sizes, *seconds, "yes" if equal else "NO"])


if __name__ == "__main__":
    reporting.run(main)
