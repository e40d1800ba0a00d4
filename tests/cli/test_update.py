"""``spngp update`` and ``spngp fit --follow``: rows added to a saved model, all at once or line by line."""

from __future__ import annotations

import datetime
import json
import math

import numpy as np
import pandas as pd
import pytest

import spngp
from command_line import run


def table(path, n, seed, header="x,z,y"):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)
    lines = [f"{a:.4f},{b:.4f},{c:.4f}" for (a, b), c in zip(X, y, strict=True)]
    path.write_text("\n".join([header, *lines]) + "\n")
    return lines


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("update")
    table(folder / "a.csv", 60, 0)
    command = ["fit", str(folder / "a.csv"), "--target", "y", "-o", str(folder / "m"), "--no-holdout"]
    assert run(*command, "--hyperparameters", "fixed", "--noise-variance", "0.01").exit_code == 0
    return folder / "m"


def test_rows_of_a_table_are_added_as_partial_fit_would(fitted, tmp_path):
    table(tmp_path / "b.csv", 20, 1)
    done = run("update", str(fitted), str(tmp_path / "b.csv"), "-o", str(tmp_path / "n"), "--json")
    assert done.exit_code == 0
    summary = json.loads(done.stdout)
    assert (summary["added"], summary["rows"]) == (20, 80)
    data = np.genfromtxt(tmp_path / "b.csv", delimiter=",", skip_header=1)
    expected, found = spngp.load(fitted), spngp.load(tmp_path / "n")
    expected.partial_fit(pd.DataFrame(data[:, :2], columns=["x", "z"]), data[:, 2])
    grid = pd.DataFrame({"x": [0.1, 0.7], "z": [0.0, -0.3]})
    np.testing.assert_allclose(found.predict(grid), expected.predict(grid), rtol=1e-9)


def test_a_window(fitted, tmp_path):
    table(tmp_path / "b.csv", 20, 1)
    done = run("update", str(fitted), str(tmp_path / "b.csv"), "-o", str(tmp_path / "n"), "--keep-last", "30")
    assert done.exit_code == 0
    assert "20 rows added, 30 in all" in done.stdout
    assert spngp.load(tmp_path / "n").row_numbers_.tolist() == list(range(50, 80))


@pytest.mark.parametrize("as_json", [False, True])
def test_lines_are_predicted_before_they_are_added(fitted, tmp_path, as_json):
    rows = [line.split(",") for line in table(tmp_path / "b.csv", 6, 2)]
    if as_json:
        text = "".join(json.dumps({"x": float(x), "z": float(z), "y": float(y)}) + "\n" for x, z, y in rows)
    else:
        text = (tmp_path / "b.csv").read_text()
    done = run("update", fitted, "-", "--follow", "-o", tmp_path / "n", input=text)
    assert done.exit_code == 0, done.stderr
    printed = done.stdout.splitlines()
    if as_json:
        means = [json.loads(line)["y_mean"] for line in printed]
    else:
        assert printed[0] == "y_mean,y_std"
        means = [float(line.split(",")[0]) for line in printed[1:]]
    model, expected = spngp.load(fitted), []
    for x, z, y in rows:
        X = pd.DataFrame({"x": [float(x)], "z": [float(z)]})
        expected.append(model.predict(X)[0])
        model.partial_fit(X, [float(y)])
    np.testing.assert_allclose(means, expected, rtol=1e-9)
    assert spngp.load(tmp_path / "n").row_numbers_.size == 66


def test_a_line_without_a_target_is_predicted_only(fitted, tmp_path):
    text = "x,z,y\n0.5,0.5,\n0.5,0.5,1.3\n"
    done = run("update", fitted, "-", "--follow", "-o", tmp_path / "n", input=text)
    assert done.exit_code == 0
    first, second = done.stdout.splitlines()[1:]
    assert first == second
    assert "1 row added, 61 in all" in done.stderr


def test_from_nothing(tmp_path):
    lines = table(tmp_path / "b.csv", 12, 3)
    text = "\n".join(["x,z,y", *lines]) + "\n"
    command = ["fit", "-", "--target", "y", "--follow", "-o", str(tmp_path / "n"), "--hyperparameters", "fixed"]
    done = run(*command, "--noise-variance", "0.01", input=text)
    assert done.exit_code == 0, done.stderr
    printed = done.stdout.splitlines()
    assert printed[1] == ","
    assert all(math.isfinite(float(value)) for line in printed[2:] for value in line.split(","))
    assert spngp.load(tmp_path / "n").row_numbers_.size == 12


def test_categories_and_dates_from_nothing_and_levels_that_come_later(tmp_path):
    start = datetime.date(2024, 1, 1)
    days = [start + datetime.timedelta(days=9 * i) for i in range(24)]
    lines = [f"{'ab'[i % 2]},{'LSM'[i % 3]},{day},{2 * (i % 2) + 0.1 * (i % 3)}" for i, day in enumerate(days)]
    text = "\n".join(["c,size,day,y", *lines]) + "\n"
    declared = ["--category", "c", "--ordinal", "size=S,M,L", "--date", "day"]
    done = run("fit", "-", "--target", "y", "--follow", "-o", tmp_path / "n", *declared, input=text)
    assert done.exit_code == 0, done.stderr
    model = spngp.load(tmp_path / "n")
    assert [column.kind for column in model.columns_.columns] == ["category", "ordinal", "date"]
    assert model.columns_.columns[0].levels == ("a", "b")
    (tmp_path / "more.csv").write_text("c,size,day,y\nz,S,2024-08-01,9\nz,L,2024-08-02,9.2\n")
    done = run("update", tmp_path / "n", tmp_path / "more.csv")
    assert done.exit_code == 0, done.stderr
    assert spngp.load(tmp_path / "n").columns_.columns[0].levels == ("a", "b", "z")
    done = run("update", tmp_path / "n", "-", "--follow", input="c,size,day,y\nw,S,2024-08-03,5\n")
    assert done.exit_code == 0, done.stderr
    assert sorted(spngp.load(tmp_path / "n").columns_.columns[0].levels) == ["a", "b", "w", "z"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("x,z,y\n0.1,0.2,0.3\n1,2\n", "row 2: 3 fields are expected, got 2"),
        ("x,y\n1,2\n", "no column 'z'"),
        ("x,z,y\n1,a,2\n", "'a' is not a number"),
        ('{"x": 1, "z": 2}\n[3]\n', "row 2: an object"),
    ],
)
def test_lines_that_cannot_be_read_end_in_one_line_and_lose_nothing(fitted, tmp_path, text, message):
    done = run("update", fitted, "-", "--follow", "-o", tmp_path / "n", input=text)
    assert done.exit_code == 2
    assert message in done.stderr.splitlines()[-1]
    if "0.1,0.2" in text:  # the line before the one that failed
        assert spngp.load(tmp_path / "n").row_numbers_.size == 61


def test_what_is_refused(fitted, tmp_path):
    table(tmp_path / "b.csv", 3, 1)
    assert run("update", str(fitted), str(tmp_path / "b.csv"), "--keep-last", "0").exit_code == 2
    assert run("update", str(fitted), str(tmp_path / "none.csv")).exit_code == 2
    (tmp_path / "c.csv").write_text("x,z,y\n1,2,\n")
    done = run("update", str(fitted), str(tmp_path / "c.csv"))
    assert done.exit_code == 2
    assert "no row with a target" in done.stderr
