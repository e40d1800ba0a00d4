"""Whether this tree predicts what an earlier commit predicted: the judge of every change that is to change nothing.

    python benchmarks/same_numbers.py --against COMMIT [--sets yacht,energy]

Each set is split once; both trees fit ``SPNGPRegressor(random_state=0)`` with default arguments on the same rows, each
in a process of its own, and mean, standard deviation and log density of the other rows are compared. The earlier tree
is checked out and compiled in a temporary folder. Exit code 1 if any relative difference is above ``--tolerance``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import reporting

ROOT = Path(__file__).resolve().parents[1]
SETS = ("yacht", "energy", "concrete", "airfoil", "ccpp", "kin40k")

WORKER = """
import sys
import numpy as np
from spngp import SPNGPRegressor, datasets
name, most, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
data = datasets.load(name)
X, Y = data.X[: data.n_train], data.Y[: data.n_train]
rng = np.random.default_rng(0)
order = rng.permutation(len(X))[:most]
cut = int(0.9 * order.size)
train, test = order[:cut], order[cut:]
y = Y[:, 0] if Y.shape[1] == 1 else Y
model = SPNGPRegressor(random_state=0, n_jobs=2).fit(X[train], y[train])
mixture = model.predict_dist(X[test])
moments = {"mean": mixture.mean, "std": mixture.std, "log_density": mixture.logpdf(y[test])}
np.savez(path, **moments, only_mean=model.predict(X[test]))
"""


def predictions(source: Path, name: str, most: int, folder: Path) -> dict[str, np.ndarray]:
    """What the tree whose package lies in ``source`` predicts."""
    path = folder / f"{name}.npz"
    environment = {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    arguments = [sys.executable, "-W", "ignore", "-c", WORKER, name, str(most), str(path)]
    subprocess.run(arguments, check=True, env=environment, cwd=folder)
    with np.load(path) as found:
        return dict(found)


def largest_difference(now: np.ndarray, before: np.ndarray) -> float:
    """Largest difference relative to the size of the values."""
    return float(np.max(np.abs(now - before)) / np.max(np.abs(before)))


def main() -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--against", required=True, metavar="COMMIT")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=10_000, help="of each set at most")
    parser.add_argument("--tolerance", type=float, default=1e-10)
    options = parser.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tree)], check=True)
        subprocess.run(["git", "checkout", "--quiet", options.against], check=True, cwd=tree)
        installed = Path(folder) / "installed"
        install = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(installed),
            str(tree),
        ]
        subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
        print(f"{'set':<12}{'quantity':<14}{'largest relative difference':>28}{'equal to the bit':>18}")
        for name in options.sets.split(","):
            now = predictions(ROOT / "src", name, options.rows, Path(folder))
            before = predictions(installed, name, options.rows, Path(folder))
            for quantity in now:
                difference = largest_difference(now[quantity], before[quantity])
                same = np.array_equal(now[quantity], before[quantity])
                worst = max(worst, difference)
                print(f"{name:<12}{quantity:<14}{difference:>28.2e}{'yes' if same else 'no':>18}", flush=True)
    return int(worst > options.tolerance)


if __name__ == "__main__":
    reporting.run(main)
