"""A messy table of deliveries, from the file to intervals that hold: ids, dates, categories, gaps, absurd values.

    python examples/deliveries.py                      # five tables, against gradient boosting; a few minutes
    python examples/deliveries.py --seeds 1 --rows 600

The same on the command line, for one table:

    python examples/deliveries.py --write deliveries   # train.csv, test.csv, later.csv
    cd deliveries
    spngp fit train.csv --target minutes --ordinal size=S,M,L,XL -o minutes.spngp
    spngp inspect minutes.spngp
    spngp evaluate minutes.spngp test.csv
    spngp predict minutes.spngp later.csv --interval 0.9 --keep ids -o predicted.csv
    head -3 predicted.csv
    spngp report minutes.spngp test.csv -o report.html

Ten outputs of the training part are absurd (a time stamp instead of minutes, a negative number); nobody says which.
The test part holds couriers that the training part has not seen, and ``later.csv`` lacks the column of weights.
HistGradientBoosting and LightGBM get the same rows with categories as categories; they are fitted to the table as it
is, and once more to the table without the ten absurd outputs, which no one could know. Errors are in minutes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from spngp import SPNGPRegressor, metrics

SIZES = ["S", "M", "L", "XL"]
N_ABSURD = 10  # outputs
N_NEW = 5  # couriers of the test part alone


def deliveries(n_rows: int, seed: int) -> pd.DataFrame:
    """A table with the true minutes; absurd ones come later."""
    rng = np.random.default_rng(seed)
    couriers = np.array([f"courier {i:02d}" for i in range(30)])
    cities = np.array(["Graz", "Linz", "Wien", "Salzburg", "Innsbruck", "Klagenfurt", "Villach", "Wels"])
    share = np.append(np.full(30 - N_NEW, 1.0), np.full(N_NEW, 0.2))
    courier = rng.choice(couriers.size, n_rows, p=rng.dirichlet(3.0 * share))
    city = rng.choice(cities.size, n_rows, p=rng.dirichlet(np.full(cities.size, 3.0)))
    size = rng.choice(4, n_rows, p=[0.4, 0.3, 0.2, 0.1])
    hour = np.clip(rng.normal(14.0, 3.5, n_rows), 7.0, 21.0)
    day = rng.integers(0, 730, n_rows)
    distance = rng.gamma(2.5, 2.0, n_rows) + 0.3
    weight = np.exp(rng.normal(-0.3, 0.5, n_rows)) * (1.0 + size)
    rain = rng.random(n_rows) < 0.3
    pace = 2.2 * np.exp(0.18 * rng.standard_normal(cities.size))[city]
    rush = 1.0 + 0.35 * np.exp(-0.5 * ((hour - 17.0) / 1.5) ** 2) + 0.15 * (day % 7 < 5)
    habit = 4.0 * rng.standard_normal(couriers.size)[courier]
    season = 2.0 * np.cos(2.0 * np.pi * day / 365.25)
    mean = 8.0 + pace * distance**0.9 * rush * (1.0 + 0.2 * rain) + habit + season + 1.5 * size + 0.8 * np.sqrt(weight)
    minutes = mean + (1.5 + 0.05 * distance) * rng.standard_normal(n_rows)
    when = pd.Timestamp("2023-01-01") + pd.to_timedelta(day * 24.0 + hour, unit="h")
    table = pd.DataFrame(
        {
            "order_id": [f"A{k}" for k in rng.permutation(n_rows) + 100_000],
            "ordered_at": when.round("min"),
            "city": cities[city],
            "courier": couriers[courier],
            "size": np.array(SIZES)[size],
            "distance_km": distance.round(2),
            "weight_kg": np.where(rng.random(n_rows) < 0.15, np.nan, weight.round(2)),
            "rain": np.where(rng.random(n_rows) < 0.1, None, np.where(rain, "yes", "no")),
            "minutes": minutes.round(1),
        }
    )
    table.loc[rng.random(n_rows) < 0.05, "distance_km"] = np.nan
    return table


def parts(n_rows: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
    """Training and test part, and which outputs of the training part are absurd."""
    table = deliveries(n_rows, seed)
    rng = np.random.default_rng([seed, 1])
    test = (rng.random(n_rows) < 1.0 / 3.0) | is_new(table)  # the training part has not seen the new couriers
    train, held_out = table[~test].reset_index(drop=True), table[test].reset_index(drop=True)
    absurd = pd.Series(False, index=train.index)
    absurd.iloc[rng.choice(len(train), N_ABSURD, replace=False)] = True
    train.loc[absurd, "minutes"] = rng.choice([99999.0, -999.0, 1440.0 * 365, 5000.0], N_ABSURD)
    return train, held_out, absurd


def is_new(table: pd.DataFrame) -> Any:
    """Which rows have a courier that the training part has not seen."""
    return (table["courier"] >= f"courier {30 - N_NEW}").to_numpy()


def spngp(train: pd.DataFrame, seed: int, n_jobs: int | None = None) -> SPNGPRegressor:
    """The whole of it: the table as it is, what is no input, and the order of the sizes."""
    model = SPNGPRegressor(columns={"order_id": "ignored", "size": SIZES}, random_state=seed, n_jobs=n_jobs)
    return model.fit(train.drop(columns="minutes"), train["minutes"])


def for_trees(table: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """The same columns with types that boosting takes: categories of the training part, parts of the date."""
    X = table.drop(columns=["order_id", "minutes", "ordered_at"], errors="ignore")
    when = table["ordered_at"].dt
    X = X.assign(
        day=when.dayofyear + 365 * (when.year - 2023), weekday=when.weekday, hour=when.hour + when.minute / 60.0
    )
    X["yearday"], X["size"] = when.dayofyear, table["size"].map({size: i for i, size in enumerate(SIZES)})
    for name in ("city", "courier", "rain"):
        X[name] = pd.Categorical(table[name], categories=sorted(like[name].dropna().unique()))
    return X


def boosters() -> dict[str, Any]:
    """Peers that know categories and gaps; LightGBM if it is installed."""
    found: dict[str, Any] = {
        "HistGradientBoosting": lambda seed: HistGradientBoostingRegressor(
            categorical_features="from_dtype", random_state=seed
        )
    }
    try:
        from lightgbm import LGBMRegressor

        found["LightGBM"] = lambda seed: LGBMRegressor(verbose=-1, random_state=seed, n_jobs=1)
    except ImportError:
        print("LightGBM is not installed (pip install lightgbm): left out")
    return found


def compare(n_rows: int, seed: int, peers: dict[str, Any]) -> bool:
    """One table; whether intervals hold and all peers are behind."""
    train, test, absurd = parts(n_rows, seed)
    started = time.process_time()
    model = spngp(train, seed)
    seconds = time.process_time() - started
    errors, held, lines = [], [], []
    for name, table in (("test part", test), ("without weights", test.drop(columns="weight_kg"))):
        scores = metrics.scores(model.predict_dist(table.drop(columns="minutes")), test["minutes"].to_numpy())
        errors.append(scores.rmse)
        held.append(scores.coverage[0.9])
        lines.append(f"{name}: RMSE {scores.rmse:.2f}, 90 % intervals hold {scores.coverage[0.9]:.1%}")
    new = is_new(test)
    std = model.predict(test.drop(columns="minutes"), return_std=True)[1]
    lines.append(f"std {std[new].mean():.2f} with unseen couriers, {std[~new].mean():.2f} with others")
    found = set(model.outliers_[:, 0]) & set(np.flatnonzero(absurd))
    lines.append(f"{len(found)} of {N_ABSURD} absurd outputs found, {seconds:.0f} CPU seconds")
    print(f"seed {seed}: {len(train)} + {len(test)} rows; SPNGPRegressor, " + "; ".join(lines))
    best = np.inf
    for name, make in peers.items():
        told = []
        for label, rows in (("as it is", train), ("without absurd outputs", train[~absurd])):
            peer = make(seed).fit(for_trees(rows, train), rows["minutes"])
            error = float(np.sqrt(np.mean((peer.predict(for_trees(test, train)) - test["minutes"]) ** 2)))
            told.append(f"{error:.2f} {label}")
            best = min(best, error)
        print(f"    {name}: RMSE {', '.join(told)}")
    return 0.87 <= held[0] <= 0.93 and errors[0] < best


def write(folder: Path, n_rows: int, seed: int) -> None:
    """The tables of one seed as files."""
    folder.mkdir(parents=True, exist_ok=True)
    train, test, _ = parts(n_rows, seed)
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    test.drop(columns=["minutes", "weight_kg"]).to_csv(folder / "later.csv", index=False)
    print(f"{folder}: train.csv ({len(train)} rows), test.csv ({len(test)} rows), later.csv (without weights)")


def main(argv: list[str] | None = None) -> int:
    """Compare on several tables, or write one; 1 if the intervals do not hold or a peer is better."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="number of tables")
    parser.add_argument("--rows", type=int, default=3000, help="rows of a table")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the tables of seed 0 and stop")
    arguments = parser.parse_args(argv)
    if arguments.write is not None:
        write(arguments.write, arguments.rows, 0)
        return 0
    warnings.simplefilter("ignore")  # LightGBM's about names of columns
    peers = boosters()
    good = [compare(arguments.rows, seed, peers) for seed in range(arguments.seeds)]
    print(f"intervals hold 87 to 93 % and RMSE is lowest on {sum(good)} of {len(good)} tables")
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
