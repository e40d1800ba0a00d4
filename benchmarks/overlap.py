"""What context rows bring and cost on large sets, on validation rows of their own.

The figures behind ``spngp.learning.defaults.overlap``.

    python benchmarks/overlap.py --rows 130000 --overlaps 2.1,3

Rows as in ``scale.py``, but of seeds that no other benchmark uses: RMSE and NLPD in units of the standard deviation of
y, ``truth`` the RMSE against the function without noise, ``seen`` how many rows an expert sees on average.
"""

from __future__ import annotations

import time

import numpy as np

import reporting
from spngp import SPNGPRegressor, metrics
from spngp.datasets import regional
from spngp.learning import learnt

TRAINING, VALIDATION = 10, 11  # seeds


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rows", type=reporting.counts, default=[130_000, 300_000])
    parser.add_argument("--overlaps", default="1.5,2,3")
    parser.add_argument("--least-weight", type=float, help="of experts that get context rows (0.01)")
    arguments = parser.parse_args(argv)
    if arguments.least_weight is not None:
        learnt.LEAST_WEIGHT = arguments.least_weight
    validation = regional(40_000, random_state=VALIDATION)
    reporting.print_head(["rows", "overlap", "seen", "fit s", "fit cpu s", "RMSE", "truth", "NLPD"])
    for n in arguments.rows:
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
            errors = [metrics.rmse(mixture, y[:, 0]) / unit for y in (validation.Y, validation.function)]
            nlpd = metrics.nlpd(mixture, validation.Y[:, 0]) - np.log(unit)
            cells = [f"{n}", f"{overlap:g}", f"{seen:.0f}", *(f"{s:.1f}" for s in seconds)]
            reporting.print_row([*cells, *(f"{error:.4f}" for error in errors), f"{nlpd:.3f}"])
    return 0


if __name__ == "__main__":
    reporting.run(main)
