"""Messy tables unlike that of ``examples/deliveries.py``: used cars and visits to a clinic, against gradient boosting.

    python benchmarks/messy_tables.py
    python benchmarks/messy_tables.py --tables clinic --seeds 2 --rows 900

Cars: prices that noise multiplies, the more so the worse the condition, with long tails; a make that the training part
has not seen; mileages that are missing, more often on old cars; prices in cents and prices of 1. Clinic: minutes of
waiting with skewed noise that grows with the queue; doctors, reasons, arrivals by day and hour, ages that are missing;
a doctor that the training part has not seen; times of 0.01 and of 9999.

``SPNGPRegressor(target="auto")`` gets the table as it is; what is no input is said, and the order of ordered levels.
HistGradientBoosting and LightGBM get the same rows, categories as categories and the parts of dates, and only rows
without absurd targets, which no one could know. Errors are in units of the target.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

import reporting
from spngp import SPNGPRegressor, metrics

CONDITIONS = ["poor", "fair", "good", "mint"]
URGENCIES = ["low", "normal", "high"]


@dataclass(frozen=True)
class Messy:
    """A table with its true targets, and what a user knows of its columns.

    Attributes
    ----------
    table : DataFrame
    target : str
    columns : dict
        As the parameter of the regressor.
    new : ndarray of bool
        Rows with a level that the training part does not see.
    absurd : tuple of float
        What wrong targets are, or what they are multiplied by if ``multiplies``.
    multiplies : bool
    """

    table: pd.DataFrame
    target: str
    columns: dict[str, Any]
    new: np.ndarray
    absurd: tuple[float, ...]
    multiplies: bool


def cars(n_rows: int, seed: int) -> Messy:
    rng = np.random.default_rng([seed, 10])
    makes = np.array([f"make {chr(65 + i)}" for i in range(16)])
    popular = 1.0 / np.arange(1.0, makes.size + 1.0)  # the last, which is new in the test part, is the rarest
    make = rng.choice(makes.size, n_rows, p=popular / popular.sum())
    region = rng.choice(9, n_rows)
    fuel = rng.choice(["petrol", "diesel", "hybrid", "electric"], n_rows, p=[0.5, 0.35, 0.1, 0.05])
    age = rng.gamma(2.0, 3.0, n_rows).clip(0.1, 25.0)
    power = np.exp(rng.normal(4.5, 0.35, n_rows)) * np.exp(0.15 * rng.standard_normal(makes.size))[make]
    mileage = age * 13.0 * np.exp(0.4 * rng.standard_normal(n_rows)) * np.where(fuel == "diesel", 1.5, 1.0)
    condition = np.clip(np.round(2.4 - 0.1 * age + 0.7 * rng.standard_normal(n_rows)), 0, 3).astype(int)
    private = rng.random(n_rows) < 0.4
    fame = 0.25 * rng.standard_normal(makes.size)
    fade = 0.11 * np.exp(0.25 * rng.standard_normal(makes.size))  # makes lose value at rates of their own
    log_price = 9.9 + fame[make] + 0.8 * np.log(power / 90.0) - fade[make] * age - 0.0018 * mileage
    log_price += np.array([-0.35, -0.12, 0.0, 0.1])[condition] - 0.06 * private
    log_price += 0.04 * rng.standard_normal(9)[region] + np.where(fuel == "electric", 0.25 - 0.06 * age, 0.0)
    spread = 0.09 * np.array([1.8, 1.3, 1.0, 0.8])[condition]
    price = np.exp(log_price + spread * rng.standard_t(5, n_rows))
    listed = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 420, n_rows), unit="D")
    first = listed - pd.to_timedelta((age * 365.25).round(), unit="D")
    table = pd.DataFrame(
        {
            "advert": [f"{k:06x}" for k in rng.choice(16**6, n_rows, replace=False)],
            "make": makes[make],
            "first_registered": first,
            "listed": listed,
            "mileage_tkm": np.where(rng.random(n_rows) < 0.05 + 0.01 * age, np.nan, mileage.round(1)),
            "kilowatts": power.round(),
            "fuel": np.where(rng.random(n_rows) < 0.03, None, fuel),
            "condition": np.array(CONDITIONS)[condition],
            "region": [f"R{i}" for i in region],
            "private": private,
            "price": price.round(-1),
        }
    )
    columns = {"advert": "ignored", "condition": CONDITIONS}
    return Messy(table, "price", columns, table["make"].to_numpy() == "make P", (100.0, 0.001), True)


def clinic(n_rows: int, seed: int) -> Messy:
    rng = np.random.default_rng([seed, 20])
    doctors = np.array([f"Dr {chr(65 + i)}" for i in range(12)])
    reasons = np.array(["check", "cough", "back", "skin", "wound", "vaccine", "letter", "other"])
    doctor, reason = rng.choice(doctors.size, n_rows), rng.choice(reasons.size, n_rows, p=rng.dirichlet(np.full(8, 4)))
    urgency = rng.choice(3, n_rows, p=[0.3, 0.6, 0.1])
    hour = np.where(rng.random(n_rows) < 0.6, rng.normal(9.5, 1.0, n_rows), rng.normal(15.0, 1.2, n_rows)).clip(8, 17.9)
    day = rng.integers(0, 330, n_rows)
    weekday = day % 7
    ahead = rng.poisson(3.0 * np.exp(-0.5 * ((hour - 10.0) / 1.2) ** 2) + 1.5 + 1.5 * (weekday == 0))
    age = rng.normal(48.0, 20.0, n_rows).clip(1, 95)
    slow = np.exp(0.3 * rng.standard_normal(doctors.size))
    work = np.array([4.0, 5.0, 6.0, 5.0, 7.0, 2.0, 1.5, 5.0])
    mean = 6.0 + 0.8 * ahead * slow[doctor] * work[reason] ** 0.5 * np.array([1.3, 1.0, 0.35])[urgency]
    mean += 4.0 * (weekday == 0) + 2.0 * np.sin(2.0 * np.pi * day / 365.25) + 0.03 * (age - 48.0)
    minutes = mean * rng.gamma(12.0, 1.0 / 12.0, n_rows)
    table = pd.DataFrame(
        {
            "visit": rng.permutation(n_rows) + 5000,
            "arrived": (pd.Timestamp("2025-02-03") + pd.to_timedelta(day * 24.0 + hour, unit="h")).round("min"),
            "doctor": doctors[doctor],
            "reason": reasons[reason],
            "urgency": np.array(URGENCIES)[urgency],
            "ahead": ahead,
            "age": np.where(rng.random(n_rows) < 0.2, np.nan, age.round()),
            "first_visit": rng.random(n_rows) < 0.25,
            "minutes": minutes.round(1),
        }
    )
    columns = {"visit": "ignored", "urgency": URGENCIES}
    return Messy(table, "minutes", columns, table["doctor"].to_numpy() == "Dr L", (0.01, 9999.0), False)


TABLES: dict[str, tuple[Callable[[int, int], Messy], int]] = {"cars": (cars, 2400), "clinic": (clinic, 1500)}
N_ABSURD = 8  # targets of the training part


def for_trees(table: pd.DataFrame, like: pd.DataFrame, columns: dict[str, Any]) -> pd.DataFrame:
    """The same columns with types that boosting takes."""
    X = {}
    for name in table:
        values, declared = table[name], columns.get(name)
        if declared == "ignored":
            continue
        if isinstance(declared, Sequence):
            X[name] = values.map({level: i for i, level in enumerate(declared)})
        elif pd.api.types.is_datetime64_any_dtype(values):
            when = values.dt
            X |= {f"{name} day": when.dayofyear + 365.25 * when.year, f"{name} weekday": when.weekday}
            X |= {f"{name} yearday": when.dayofyear, f"{name} hour": when.hour + when.minute / 60.0}
        elif pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
            X[name] = values.astype(float)
        else:
            X[name] = pd.Categorical(values, categories=sorted(like[name].dropna().unique()))
    return pd.DataFrame(X)


def peers(seed: int) -> list[Any]:
    """Peers that know categories and gaps; None for LightGBM where it is not installed."""
    found: list[Any] = [HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=seed), None]
    if importlib.util.find_spec("lightgbm") is not None:
        from lightgbm import LGBMRegressor

        found[1] = LGBMRegressor(verbose=-1, random_state=seed, n_jobs=1)
    return found


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--tables", type=reporting.names, default=list(TABLES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--rows", type=int, help="of a table; a third is the test part")
    parser.add_argument("--target", default="auto", help="scale of the target: auto, log or none")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # LightGBM's about names of columns
    heads = ["table", "rows", "seed", "RMSE", "HistGradientBoosting", "LightGBM", "90 % holds", "of unseen", "NLPD"]
    reporting.print_head([*heads, "absurd found", "fit cpu s"])
    target = None if arguments.target == "none" else arguments.target
    for name in arguments.tables:
        make, n_rows = TABLES[name]
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            print_comparison(name, make(arguments.rows or n_rows, seed), seed, target)
    return 0


def print_comparison(name: str, messy: Messy, seed: int, scale: str | None) -> None:
    rng = np.random.default_rng([seed, 1])
    tested = (rng.random(len(messy.table)) < 1.0 / 3.0) | messy.new
    train, test = (messy.table[rows].reset_index(drop=True) for rows in (~tested, tested))
    y, y_test = train.pop(messy.target).to_numpy(), test.pop(messy.target).to_numpy()
    wrong = rng.choice(y.size, N_ABSURD, replace=False)
    absurd = y.copy()
    factors = rng.choice(messy.absurd, N_ABSURD)
    absurd[wrong] = y[wrong] * factors if messy.multiplies else factors
    start = time.process_time()
    model = SPNGPRegressor(columns=messy.columns, target=scale, random_state=seed).fit(train, absurd)
    seconds = time.process_time() - start
    found = model.predict_dist(test)
    scores = metrics.scores(found, y_test)
    low, high = found.interval(0.9)
    unseen = messy.new[tested]
    held = float(np.mean((y_test >= low)[unseen] & (y_test <= high)[unseen]))
    sound = np.setdiff1d(np.arange(y.size), wrong)
    errors: list[float | str] = []
    for peer in peers(seed):
        if peer is None:
            errors.append("not installed")
            continue
        peer.fit(for_trees(train.iloc[sound], train, messy.columns), y[sound])
        guesses = peer.predict(for_trees(test, train, messy.columns))
        errors.append(float(np.sqrt(np.mean((guesses - y_test) ** 2))))
    doubted = len(set(model.outliers_[:, 0].tolist()) & set(wrong.tolist()))
    quality = [
        scores.rmse,
        *errors,
        f"{scores.coverage[0.9]:.3f}",
        f"{held:.3f} ({unseen.sum()})",
        f"{scores.nlpd:.3f}",
    ]
    reporting.print_row([name, y.size, seed, *quality, f"{doubted} of {N_ABSURD}", f"{seconds:.1f}"])


if __name__ == "__main__":
    reporting.run(main)
