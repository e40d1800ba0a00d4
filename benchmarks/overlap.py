"""What context rows bring and cost on large sets, on validation rows of their own.

The figures behind ``spngp.learning.defaults.overlap``.

    python benchmarks/overlap.py --rows 130000 --overlaps 2.1,3

Rows as in ``scale.py``, but of seeds that no other benchmark uses: RMSE and NLPD in units of the standard deviation of
y, ``truth`` the RMSE against the function without noise, ``seen`` how many rows an expert sees on average.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from spngp import SPNGPRegressor, metrics
from spngp.datasets import regional
from spngp.learning import posterior

TRAINING, VALIDATION = 10, 11  # seeds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="130000,300000")
    parser.add_argument("--overlaps", default="1.5,2,3")
    parser.add_argument("--least-weight", type=float, help="of experts that get context rows (0.01)")
    arguments = parser.parse_args()
    if arguments.least_weight is not None:
        posterior._LEAST_WEIGHT = arguments.least_weight
    validation = regional(40_000, random_state=VALIDATION)
    print(f"| rows | overlap | seen | fit s | fit cpu s | RMSE | truth | NLPD |\n|{'---|' * 8}", flush=True)
    for n in map(int, arguments.rows.split(",")):
        rows = regional(n, random_state=TRAINING)
        unit = float(rows.Y.std())
        for overlap in map(float, arguments.overlaps.split(",")):
            start, cpu = time.perf_counter(), time.process_time()
            model = SPNGPRegressor(overlap=overlap, n_jobs=2, random_state=0).fit(rows.X, rows.Y[:, 0])
            seconds = [time.perf_counter() - start, time.process_time() - cpu]
            mixture = model.predict_dist(validation.X)
            seen = np.mean(
                [placed.leaf.gp.n_own + placed.leaf.gp.n_context for placed in model.network_.responsibilities()]
            )
            errors = [
                np.sqrt(np.mean((mixture.mean - y[:, 0]) ** 2)) / unit for y in (validation.Y, validation.function)
            ]
            nlpd = metrics.nlpd(mixture, validation.Y[:, 0]) - np.log(unit)
            cells = [f"{n}", f"{overlap:g}", f"{seen:.0f}", *(f"{s:.1f}" for s in seconds)]
            print(f"| {' | '.join([*cells, *(f'{e:.4f}' for e in errors), f'{nlpd:.3f}'])} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
