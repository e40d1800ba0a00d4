"""What ``spngp fit`` holds out to measure, and the model that it saves in the end."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import spngp
from command_line import ok
from spngp.cli.app import app

GROSS = [5, 50, 77, 150, 250, 251, 301, 333, 387, 399]  # rows of the table; of 400, seed 0 holds out 5 and 387


def fit(*arguments) -> str:
    result = CliRunner().invoke(app, ["fit", *map(str, arguments)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(n)


def named(X) -> pa.Table:
    return pa.table(list(X.T), names=["a", "b"])


def write(path, X, y) -> None:
    """A table; NaN is an empty cell."""
    cells = [["" if np.isnan(value) else repr(value) for value in row] for row in np.column_stack([X, y]).tolist()]
    path.write_text("a,b,y\n" + "".join(f"{','.join(row)}\n" for row in cells))


@pytest.fixture
def with_errors():
    X, y = draw(400, seed=0)
    y[GROSS] += np.random.default_rng(1).choice([-1, 1], len(GROSS)) * 5.0
    return X, y


@pytest.mark.long
def test_the_saved_model_is_the_same_with_and_without_a_holdout(tmp_path, with_errors):
    write(tmp_path / "d.csv", *with_errors)
    fit(tmp_path / "d.csv", "-t", "y", "-o", tmp_path / "measured")
    fit(tmp_path / "d.csv", "-t", "y", "--no-holdout", "-o", tmp_path / "plain")
    assert (tmp_path / "measured").read_bytes() == (tmp_path / "plain").read_bytes()
    X_new, y_new = draw(2_000, seed=2)
    mixture = spngp.load(tmp_path / "measured").predict_dist(named(X_new))
    low, high = mixture.interval(0.9)
    assert np.sqrt(np.mean((mixture.mean - y_new) ** 2)) < 0.13
    assert 0.86 < np.mean((low <= y_new) & (y_new <= high)) < 0.96


def test_outliers_are_numbered_as_rows_of_the_table(tmp_path, with_errors):
    X, y = with_errors
    y[[0, 120, 252]] = np.nan  # rows without a target are left out, but they count
    write(tmp_path / "d.csv", X, y)
    fit(tmp_path / "d.csv", "-t", "y", "-o", tmp_path / "m")
    model = spngp.load(tmp_path / "m")
    assert model.outliers_[:, 0].tolist() == GROSS
    assert model.row_numbers_.tolist() == np.delete(np.arange(400), [0, 120, 252]).tolist()
    model.partial_fit(named(X[:2]), y[1:3])
    assert model.row_numbers_[-2:].tolist() == [400, 401]


def test_scores_are_said_to_be_those_of_a_model_that_is_not_the_saved_one(tmp_path):
    write(tmp_path / "d.csv", *draw(200, seed=0))
    text = fit(tmp_path / "d.csv", "-t", "y", "-o", tmp_path / "m")
    measured, saved = text.index("On 20 rows held out, by a model of the other 180"), text.index("learnt from all 200")
    assert measured < saved


def test_absurd_values_held_out_are_told_and_not_scored(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.uniform(-2, 2, 120)
    y = np.sin(2 * a) + 0.1 * rng.standard_normal(120)
    y[rng.choice(120, 3, replace=False)] = 1e6
    rows = "".join(f"{x:.4f},{value:.4f}\n" for x, value in zip(a, y, strict=True))
    (tmp_path / "d.csv").write_text(f"a,y\n{rows}")
    fit = ["fit", tmp_path / "d.csv", "-t", "y", "--holdout", "0.5", "--json", "-o", tmp_path / "m"]
    result = ok(*fit, "--hyperparameters", "tied")
    assert "100 or more standard deviations from the prediction, not counted in the scores" in result.stderr
    assert json.loads(result.stdout)["held_out"]["y"]["rmse"] < 2.0
