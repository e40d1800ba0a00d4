"""Columns of weights and variances, and the scale of the target, on the command line."""

import json

import numpy as np
import pytest

import spngp
from command_line import QUICK, ok, refused, run


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.uniform(-2, 2, 60)
    y = np.exp(a + 0.1 * rng.standard_normal(60))
    weights, variances = rng.integers(0, 3, 60), rng.uniform(0, 0.1, 60)
    rows = [f"{a[i]:.6f},{y[i]:.6f},{weights[i]},{variances[i]:.6f}" for i in range(60)]
    rows[4] = rows[4].replace(f"{y[4]:.6f}", "")  # without a target
    (tmp_path / "t.csv").write_text("a,y,w,v\n" + "\n".join(rows) + "\n")
    return tmp_path / "t.csv"


def fit(table, *options):
    ok("fit", table, "-t", "y", *options, *QUICK, "--no-holdout", "-o", table.with_name("m"))
    return spngp.load(table.with_name("m"))


def test_columns_of_weights_and_variances_reach_the_fit(table):
    weighted = fit(table, "--weight", "w", "--variance", "v")
    assert weighted.n_features_in_ == 1
    data = np.genfromtxt(table, delimiter=",", skip_header=1)
    seen = data[~np.isnan(data[:, 1])]
    assert weighted.row_repeats_.tolist() == seen[:, 2].astype(int).tolist()
    np.testing.assert_allclose(weighted._learnt.variances[:, 0], np.repeat(seen[:, 3], weighted.row_repeats_))
    assert weighted.row_numbers_[0] == np.flatnonzero(data[:, 2] > 0)[0]


def test_fractions_of_rows(table):
    data = np.genfromtxt(table, delimiter=",", skip_header=1)
    lines = ["a,y,w", *(f"{a},{'' if np.isnan(y) else y},{0.5 * w}" for a, y, w, _ in data)]
    table.write_text("\n".join(lines))
    assert set(fit(table, "--weight", "w")._learnt.shares.tolist()) == {0.5, 1.0}


def test_the_scale_of_the_target(table):
    model = fit(table, "--id", "w,v", "--target-scale", "log")
    assert model.target == "log"
    assert ok("inspect", table.with_name("m")).stdout
    ok("predict", table.with_name("m"), table, "--interval", "0.9", "-o", table.with_name("p.csv"))
    header, *rows = table.with_name("p.csv").read_text().splitlines()
    lower = next(j for j, name in enumerate(header.split(",")) if "low" in name)
    assert min(float(row.split(",")[lower]) for row in rows) > 0
    ok("evaluate", table.with_name("m"), table)


def test_bad_columns_are_named(table):
    text = table.read_text().splitlines()
    text[3] = ",".join([*text[3].split(",")[:2], "-1", "-2"])
    table.write_text("\n".join(text) + "\n")
    call = ["fit", table, "-t", "y", "-o", table.with_name("m")]
    message = refused(*call, "--weight", "w")
    assert "row 3, column 'w': a weight must be >= 0, got -1; 0 leaves a row out" in message
    assert "'v'" in refused(*call, "--variance", "v")
    assert "a variance must be >= 0, got -2" in refused(*call, "--variance", "v")
    assert "'nowhere'" in refused(*call, "--weight", "nowhere")
    assert "log or auto" in refused(*call, "--target-scale", "sqrt")


def test_inspect_tells_how_much_inputs_matter(table):
    fit(table, "--id", "w")
    told = ok("inspect", table.with_name("m"), "--importance").stdout
    assert "Columns by what they matter" in told
    assert "Columns by what they matter" not in ok("inspect", table.with_name("m")).stdout
    found = json.loads(ok("inspect", table.with_name("m"), "--importance", "--json").stdout)["importance"]["y"]
    assert list(found) == ["a", "v"]
    assert found["a"]["share"] > 0.8


def test_remedies_are_options(table):
    header, *rows = table.read_text().splitlines()

    def said(*arguments):
        result = run(*arguments)
        assert result.exit_code == 2
        return result.stderr.splitlines()[-1]

    call = ["fit", table, "-t", "y", "-o", table.with_name("m")]

    def with_column(values):
        table.write_text(
            "\n".join([f"{header},c", *(f"{row},{value}" for row, value in zip(rows, values, strict=True))])
        )

    with_column(["x"] * len(rows))
    assert "column 'c' has one level only, 'x': nothing to learn from; leave it out (--id c)" in said(*call)
    with_column([""] * len(rows))
    assert "column 'c' has no values; leave it out (--id c)" in said(*call)
    with_column([row.split(",")[header.split(",").index("y")] for row in rows])
    assert "column 'c' of X is the target itself; leave it out of X (--id c)" in said(*call)
    with_column(["1", "a"] + ["2"] * (len(rows) - 2))
    assert "'a' is not a number (a column of categories or dates must be declared in the fit, by --" in said(*call)
    first = rows[0].split(",")
    table.write_text("\n".join([header, ",".join([first[0], "-3", *first[2:]]), *rows[1:]]))
    message = said(*call, "--target-scale", "log")
    assert "'y' must be positive under --target-scale log, got -3 in row 1; use --target-scale auto, or none" in message
