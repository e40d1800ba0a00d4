"""How much of a fit is chance: the same rows, other seeds, judged on validation rows.

    SPNGP_DATA=../shared/data python benchmarks/lottery.py --sets kin40k,ccpp --rows 8192 --seeds 4

A seed decides which rows and regions tied parameters are learnt from. Rows are those that ``accuracy.py`` trains on in
its first split, some of them held out; no test row is looked at. Columns: mean NLPD, its standard deviation over seeds,
the worst seed's NLPD, mean RMSE, mean CPU seconds to fit. Outputs are standardised.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

import accuracy
import reporting
from spngp import SPNGPRegressor, metrics

SETS = ("airfoil", "ccpp", "naval", "pumadyn32nm", "kin40k", "keggdirected")


def judged(rows: accuracy.Rows, seed: int, overlap: float | None) -> tuple[float, float, float]:
    X, y, X_new, y_new = rows
    start = time.process_time()
    model = SPNGPRegressor(overlap=overlap, random_state=seed).fit(X, y)
    seconds = time.process_time() - start
    mixture = model.predict_dist(X_new)
    return metrics.nlpd(mixture, y_new), metrics.rmse(mixture, y_new), seconds


def main() -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("--sets", type=reporting.names, default=list(SETS))
    parser.add_argument("--rows", type=int, default=8192, help="most rows to learn from; others are validation rows")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--overlap", type=float, help="context rows per own row, instead of the default")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    reporting.print_head(["set", "rows", "NLPD", "std over seeds", "worst", "RMSE", "CPU s"])
    for name in arguments.sets:
        X, y, _, _ = accuracy.splits(name, 1)[0]
        order = np.random.default_rng(7).permutation(len(y))
        n = min(arguments.rows, len(y) * 4 // 5)
        learnt, held_out = order[:n], order[n : n + 4000]
        rows = X[learnt], y[learnt], X[held_out], y[held_out]
        found = np.array([judged(rows, seed, arguments.overlap) for seed in range(arguments.seeds)])
        nlpd, (_, rmse, seconds) = found[:, 0], found.mean(axis=0)
        cells = [f"{nlpd.mean():.3f}", f"{nlpd.std():.3f}", f"{nlpd.max():.3f}", f"{rmse:.4f}", f"{seconds:.1f}"]
        reporting.print_row([name, n, *cells])


if __name__ == "__main__":
    reporting.run(main)
