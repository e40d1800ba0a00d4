"""Each command as a person would call it: results, streams, files, and what happens to bad input."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import re
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import spngp
from command_line import QUICK, ok, refused
from spngp import metrics
from spngp.io import SCHEMA
from spngp.kernels import PiecewiseConstant, SquaredExponential


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with an id, two inputs, categories and two targets; and a model of it."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    n = 200
    a, b = rng.uniform(-2, 2, n), rng.uniform(0, 1, n)
    kind = rng.choice(["up", "down"], n)
    y = np.sin(2 * a) + (kind == "up") + 0.1 * rng.standard_normal(n)
    z = 5 + b + 0.2 * rng.standard_normal(n)
    rows = [f"r{i:03d},{a[i]:.6f},{b[i]:.6f},{kind[i]},{y[i]:.6f},{z[i]:.6f}\n" for i in range(n)]
    (folder / "train.csv").write_text("id,a,b,kind,y,z\n" + "".join(rows[:150]))
    (folder / "test.csv").write_text("id,a,b,kind,y,z\n" + "".join(rows[150:]))
    fit = ["fit", folder / "train.csv", "--category", "kind", *QUICK]
    ok(*fit, "--target", "y", "--features", "a,b,kind", "-o", folder / "one.spngp")
    ok(*fit, "--target", "y", "--target", "z", "--id", "id", "-o", folder / "two.spngp")
    return folder


def columns(path: Path) -> dict[str, list[str]]:
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[j] for row in rows] for j, name in enumerate(header)}


# fit


def test_fit_tells_held_out_scores_and_uses_all_rows_in_the_end(folder, tmp_path):
    fit = ["fit", folder / "train.csv", "-t", "y", "--features", "a,b", *QUICK, "-o", tmp_path / "m"]
    summary = json.loads(ok(*fit, "--json").stdout)
    assert summary["rows"] == 150
    assert summary["held_out"]["y"]["rows"] == 15
    assert 0 < summary["held_out"]["y"]["rmse"] < 2
    assert spngp.load(tmp_path / "m")._learnt.X.shape == (150, 2)
    text = ok(*fit).stdout
    assert "On 15 rows held out" in text
    assert f"{summary['held_out']['y']['rmse']:.4g}" in text
    assert all(len(line) <= 80 for line in text.splitlines() if str(tmp_path) not in line and str(folder) not in line)
    assert "\x1b" not in text
    quiet = ok(*fit, "--no-holdout")
    assert "held out" not in quiet.stdout
    again = tmp_path / "again"
    ok(*fit[:-1], again, "--no-holdout")
    assert again.read_bytes() == (tmp_path / "m").read_bytes()  # same data and seed, same model


def test_fit_is_what_the_library_does(folder, tmp_path):
    ok("fit", folder / "train.csv", "-t", "y", "--features", "a,b", *QUICK, "--no-holdout", "-o", tmp_path / "m")
    loaded = spngp.load(tmp_path / "m")
    table = columns(folder / "train.csv")
    X, y = np.array([table["a"], table["b"]], dtype=float).T, np.array(table["y"], dtype=float)
    model = spngp.SPNGPRegressor(max_leaf_size=60, hyperparameters="fixed", random_state=0).fit(X, y)
    names = pa.table(list(X[:5].T), names=["a", "b"])
    assert np.array_equal(loaded.predict(names), model.predict(X[:5]))
    assert loaded.feature_names_in_.tolist() == ["a", "b"]


def test_settings_from_a_file_and_the_command_line_before_it(folder, tmp_path):
    config = tmp_path / "fit.toml"
    config.write_text(
        f'target = ["y", "z"]\nfeatures = ["a", "kind"]\ncategory = "kind"\nmax_leaf_size = 70\noverlap = 1\n'
        f'hyperparameters = "fixed"\nholdout = 0\noutput = "{tmp_path / "m"}"\n'
    )
    ok("fit", folder / "train.csv", "--config", config, "--overlap", "2")
    model = spngp.load(tmp_path / "m")
    assert (model.max_leaf_size, model.overlap) == (70, 2.0)
    assert model.table_.targets == ("y", "z")
    assert model.feature_names_in_.tolist() == ["a", "kind"]
    config.write_text('[ordinal]\nkind = ["down", "up"]\n')
    ok("fit", folder / "train.csv", "-t", "y", "--id", "id,z", "--config", config, *QUICK, "-o", tmp_path / "m")
    assert spngp.load(tmp_path / "m").feature_names_in_.tolist() == ["a", "b", "kind"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("targets = 'y'", "unknown setting 'targets'; known are category, date, date_format, features"),
        ("max_leaf_size = 'many'", "max_leaf_size must be an integer, got 'many'"),
        ("max-leaf-size = true", "max-leaf-size must be an integer, got True"),
        ("category = [1]", "category must be a name or a list of names"),
        ("ordinal = 3", "ordinal must be a table of names"),
        ("target = ", "is not TOML"),
    ],
)
def test_settings_that_are_wrong(folder, tmp_path, text, message):
    (tmp_path / "c.toml").write_text(text)
    config = ["--config", tmp_path / "c.toml"]
    assert message in refused("fit", folder / "train.csv", "-t", "y", "-o", tmp_path / "m", *config)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "m"], "--target"),
        (["-t", "y"], "--output"),
        (["-t", "y", "-o", "m", "--holdout", "1"], "--holdout"),
        (["-t", "y", "-o", "m", "--seed", "-1"], "--seed"),
        (["-t", "y", "-o", "nowhere/m"], "nowhere: No such directory"),
        (["-t", "y", "-o", "."], "Is a directory"),
        (["-t", "y", "-o", "-"], "standard output"),
        (["-t", "y", "-o", "m", "--structure", "fractal"], "structure"),
        (["-t", "y", "-o", "m", "--max-leaf-size", "0"], "--max-leaf-size"),
        (["-t", "y", "-o", "m", "--config", "none.toml"], "none.toml: No such file"),
    ],
)
def test_wrong_options_of_fit(folder, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused("fit", folder / "train.csv", "--features", "a,b", *arguments)
    assert list(tmp_path.iterdir()) == []


BAD_TABLES = {
    "no such column": ("a,b\n1,2\n", "has no column 'y'"),
    "text": ("a,y\n1,2\n3,4\nx,5\n", "row 3, column 'a': 'x' is not a number"),
    "ragged": ("a,y\n1,2\n3\n", "line 3: 1 fields where the header has 2"),
    "no rows": ("a,y\n", "has a header but no rows"),
    "empty": ("", "is empty"),
    "duplicate header": ("a,a,y\n1,2,3\n", "column 'a' stands twice"),
    "constant target": ("a,y\n1,7\n2,7\n3,7\n", "target 'y' is constant (7 in 3 rows)"),
    "target all missing": ("a,y\n1,\n2,\n", "target 'y' has no values"),
    "no inputs": ("a,b,y\n1,,2\n,,3\n2,,1\n", "column 'b' has no values; leave it out"),
    "zip": ("PK\x03\x04", "is a zip archive"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_refused_and_the_old_model_stays(folder, tmp_path, case):
    content, message = BAD_TABLES[case]
    data, model = tmp_path / "data.csv", tmp_path / "m.spngp"
    data.write_text(content)
    old = (folder / "one.spngp").read_bytes()
    model.write_bytes(old)
    assert message in refused("fit", data, "--target", "y", "-o", model)
    assert model.read_bytes() == old
    assert sorted(tmp_path.iterdir()) == [data, model]


def test_missing_targets_are_left_out_and_said_so(tmp_path):
    (tmp_path / "d.csv").write_text("a,y\n" + "".join(f"{i},{'' if i % 5 == 0 else i % 7}\n" for i in range(40)))
    result = ok("fit", tmp_path / "d.csv", "-t", "y", *QUICK, "--no-holdout", "-o", tmp_path / "m")
    assert "8 rows without a target are left out" in result.stderr
    assert spngp.load(tmp_path / "m")._learnt.X.shape == (32, 1)


def test_bom_semicolons_and_decimal_commas_from_fit_to_predict(tmp_path):
    rows = [(i / 4, np.sin(i / 4)) for i in range(60)]
    text = "\ufeffx;y\n" + "".join(f"{x:.4f};{y:.4f}\n".replace(".", ",") for x, y in rows)
    (tmp_path / "d.csv").write_text(text)
    ok("fit", tmp_path / "d.csv", "-t", "y", *QUICK, "-o", tmp_path / "m")
    ok("predict", tmp_path / "m", tmp_path / "d.csv", "-o", tmp_path / "p.csv")
    predicted = columns(tmp_path / "p.csv")
    assert np.abs(np.array(predicted["y_mean"], dtype=float) - [y for _, y in rows]).max() < 0.5


# predict


def test_predict_writes_what_the_model_says_and_keeps_other_columns(folder, tmp_path):
    out = tmp_path / "p.csv"
    options = ["--quantiles", "0.05,0.5", "--interval", "0.9", "--samples", "2"]
    ok("predict", folder / "one.spngp", folder / "test.csv", *options, "-o", out)
    predicted = columns(out)
    names = ["y_mean", "y_std", "y_q0.05", "y_q0.5", "y_low0.9", "y_high0.9", "y_sample1", "y_sample2"]
    assert list(predicted) == ["id", "a", "b", "kind", "y", "z", *names]
    assert predicted["id"] == [f"r{i:03d}" for i in range(150, 200)]
    table = columns(folder / "test.csv")
    X = pa.table({**{name: np.array(table[name], dtype=float) for name in ("a", "b")}, "kind": table["kind"]})
    mixture = spngp.load(folder / "one.spngp").predict_dist(X)
    wanted = {"y_mean": mixture.mean, "y_std": mixture.std, "y_q0.5": mixture.quantile(0.5)}
    wanted |= {"y_low0.9": mixture.interval(0.9)[0], "y_q0.05": mixture.quantile(0.05)}
    for name, values in wanted.items():
        assert np.array_equal(np.array(predicted[name], dtype=float), values), name
    assert float(np.corrcoef(np.array(predicted["y_sample1"], dtype=float), mixture.mean)[0, 1]) > 0.5


def test_predict_draws_many_samples_without_holding_all_of_them(folder, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("a,b,kind\n" + "".join(f"{i / 3000 - 1},0.5,up\n" for i in range(6000)))
    sample = ["predict", folder / "one.spngp", table, "--samples", "300", "-o", tmp_path / "p.parquet"]
    ok("predict", folder / "one.spngp", folder / "test.csv", "-o", tmp_path / "p.parquet")  # imports what it needs
    tracemalloc.start()
    try:
        ok(*sample)
        assert tracemalloc.get_traced_memory()[1] < 50e6  # the draws alone are 14 MB, and were held five times
    finally:
        tracemalloc.stop()
    found = pa.parquet.read_table(tmp_path / "p.parquet")
    ok(*sample)
    assert pa.parquet.read_table(tmp_path / "p.parquet").equals(found)
    mean, std, *draws = (column.to_numpy() for column in found.columns[3:])
    z = (np.array(draws) - mean) / std
    assert z.shape == (300, 6000)
    assert np.abs(z.mean()) < 0.005
    assert np.abs(z.std() - 1.0) < 0.005


def test_rows_are_fewer_at_a_time_the_more_components_a_prediction_has(folder, monkeypatch):
    from spngp.cli import opening

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    fixed = {"max_leaf_size": 20, "hyperparameters": "fixed", "random_state": 0}
    many = spngp.SPNGPRegressor(n_partitions=3, **fixed).fit(X, np.sin(9 * X[:, 0]))
    components = many.predict_dist(X).means.shape[-1]
    assert components > 20
    with monkeypatch.context() as smaller:
        smaller.setattr(opening, "_NUMBERS", 10_000)
        assert opening.rows_at_a_time(many) == 10_000 // components
    assert opening.rows_at_a_time(many) == opening.rows_at_a_time(spngp.load(folder / "one.spngp")) == opening._ROWS


def test_predict_in_blocks_is_predict_at_once(folder, tmp_path, monkeypatch):
    from spngp.cli import opening

    ok("predict", folder / "two.spngp", folder / "test.csv", "-o", tmp_path / "whole.csv")
    monkeypatch.setattr(opening, "_ROWS", 7)
    ok("predict", folder / "two.spngp", folder / "test.csv", "-o", tmp_path / "blocks.csv")
    whole, blocks = columns(tmp_path / "whole.csv"), columns(tmp_path / "blocks.csv")
    assert list(whole) == ["id", "a", "b", "kind", "y", "z", "y_mean", "y_std", "z_mean", "z_std"]
    for name in list(whole)[6:]:
        assert np.allclose(np.array(whole[name], dtype=float), np.array(blocks[name], dtype=float), rtol=1e-9)


def test_predict_from_and_to_pipes_and_parquet(folder, tmp_path):
    model, test = folder / "one.spngp", (folder / "test.csv").read_text()
    ok("predict", model, folder / "test.csv", "-o", tmp_path / "p.csv")
    piped = ok("predict", model, "-", input=test)
    assert piped.stdout == (tmp_path / "p.csv").read_text()
    assert piped.stderr == ""
    ok("predict", model, folder / "test.csv", "--keep", "none", "-o", tmp_path / "p.parquet")
    table = pa.parquet.read_table(tmp_path / "p.parquet")
    assert table.schema.names == ["y_mean", "y_std"]
    assert table.column("y_mean").to_pylist() == [float(v) for v in columns(tmp_path / "p.csv")["y_mean"]]
    summary = json.loads(ok("predict", model, folder / "test.csv", "-o", tmp_path / "p.csv", "--json").stdout)
    assert summary["rows"] == 50


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("c,d\n1,2\n", "has no column 'a'; it has 'c', 'd'"),
        ("a,b,kinds\n1,2,up\n", "has no column 'kind'; did you mean 'kinds'?"),
        ("a,b,kind\n1,two,up\n", "row 1, column 'b': 'two' is not a number"),
        ("a,b,kind\n", "has a header but no rows"),
        ("a,b,kind,y_mean\n1,2,up,3\n", "has a column 'y_mean' already"),
    ],
)
def test_bad_rows_to_predict_leave_the_old_output(folder, tmp_path, rows, message):
    (tmp_path / "new.csv").write_text(rows)
    out = tmp_path / "out.csv"
    out.write_text("old")
    assert message in refused("predict", folder / "one.spngp", tmp_path / "new.csv", "-o", out)
    assert out.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_an_error_late_in_the_file_leaves_the_old_output(folder, tmp_path):
    rows = "1,0.5,up\n" * 30_000 + "1,bad,up\n"
    (tmp_path / "new.csv").write_text("a,b,kind\n" + rows)
    (tmp_path / "out.csv").write_text("old")
    line = refused("predict", folder / "one.spngp", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert "row 30001, column 'b': 'bad' is not a number" in line
    assert (tmp_path / "out.csv").read_text() == "old"


def test_what_is_missing_or_new_makes_predictions_wider(folder, tmp_path):
    def stds(rows: str) -> list[float]:
        (tmp_path / "new.csv").write_text(rows)
        told = ok("predict", folder / "one.spngp", tmp_path / "new.csv", "-o", tmp_path / "out.csv").stderr
        assert ("has no 'kind': taken as missing in every row" in told) == ("kind" not in rows)
        return [float(std) for std in columns(tmp_path / "out.csv")["y_std"]]

    known, unseen, without, lacking = stds("a,b,kind\n1,0.5,up\n1,0.5,sideways\n1,0.5,\n,0.5,up\n")
    assert unseen == without > known
    assert lacking > known
    assert stds("a,b\n1,0.5\n") == pytest.approx([without])


def test_columns_that_are_copied(folder, tmp_path):
    def kept(*options: str) -> list[str]:
        ok("predict", folder / "one.spngp", folder / "test.csv", *options, "-o", tmp_path / "p.csv")
        return list(columns(tmp_path / "p.csv"))

    assert kept() == kept("--keep", "all") == ["id", "a", "b", "kind", "y", "z", "y_mean", "y_std"]
    assert kept("--keep", "ids") == ["id", "y", "z", "y_mean", "y_std"]
    assert kept("--keep", "none") == ["y_mean", "y_std"]
    told = refused("predict", folder / "one.spngp", folder / "test.csv", "--keep", "some", "-o", tmp_path / "p.csv")
    assert "--keep: must be all, ids or none, got 'some'" in told


@pytest.mark.parametrize(
    "options",
    [
        ["--quantiles", "0.5,2"],
        ["--quantiles", "half"],
        ["--interval", "90"],
        ["--samples", "-1"],
        ["-o", "out.xlsx"],
        ["--json"],
        ["--jobs", "0", "-o", "x.csv"],
    ],
)
def test_wrong_options_of_predict(folder, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    refused("predict", folder / "one.spngp", folder / "test.csv", *options)
    assert list(tmp_path.iterdir()) == []


# Files that are no models


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a", "b" * 100)
    return buffer.getvalue()


BAD_MODELS = {
    "truncated": (lambda whole: whole[: len(whole) // 2], "is truncated"),
    "flipped at the start": (lambda whole: flipped(whole, 300), "damaged"),
    "flipped in the middle": (lambda whole: flipped(whole, len(whole) // 2), "damaged"),
    "flipped at the end": (lambda whole: flipped(whole, len(whole) - 3), "damaged"),
    "later": (
        lambda whole: whole.replace(b'\\"schema\\": %d' % SCHEMA, b'\\"schema\\": 9'),
        "later version of spngp (schema 9",
    ),
    "zip": (lambda whole: _zip(), "is a zip archive"),
    "pickle": (lambda whole: pickle.dumps(list(range(99))), "is a pickle"),
    "table": (lambda whole: b"a,b,y\n1,2,3\n4,5,6\n", "is not a spngp model"),
    "nothing": (lambda whole: b"", "is empty"),
}


def flipped(whole: bytes, place: int) -> bytes:
    return whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :]


@pytest.mark.parametrize("case", BAD_MODELS)
def test_bad_models_are_refused_and_the_old_output_stays(folder, tmp_path, case):
    damage, message = BAD_MODELS[case]
    model, out = tmp_path / "bad.spngp", tmp_path / "out.csv"
    model.write_bytes(damage((folder / "one.spngp").read_bytes()))
    out.write_text("old")
    assert message in refused("predict", model, folder / "test.csv", "-o", out)
    assert out.read_text() == "old"
    assert message in refused("evaluate", model, folder / "test.csv")
    assert message in refused("inspect", model)


def test_files_that_are_not_there(folder):
    assert "none.spngp: No such file or directory" in refused("predict", "none.spngp", folder / "test.csv")
    assert "none.csv: No such file or directory" in refused("predict", folder / "one.spngp", "none.csv")
    assert "Is a directory" in refused("predict", folder / "one.spngp", folder)


# evaluate, inspect


def test_evaluate_agrees_with_the_metrics(folder):
    told = json.loads(ok("evaluate", folder / "two.spngp", folder / "test.csv", "--json").stdout)["targets"]
    table = columns(folder / "test.csv")
    X = pa.table({**{name: np.array(table[name], dtype=float) for name in ("a", "b")}, "kind": table["kind"]})
    Y = np.array([table["y"], table["z"]], dtype=float).T
    mixture = spngp.load(folder / "two.spngp").predict_dist(X)
    assert np.isclose(np.mean([told[name]["nlpd"] for name in "yz"]), metrics.nlpd(mixture, Y))
    assert np.isclose(np.mean([told[name]["crps"] for name in "yz"]), metrics.crps(mixture, Y))
    assert np.isclose(np.mean([told[name]["rmse"] ** 2 for name in "yz"]), metrics.rmse(mixture, Y) ** 2)
    for level in ("0.5", "0.9", "0.99"):
        shares = [told[name]["coverage"][level] for name in "yz"]
        assert np.isclose(np.mean(shares), metrics.coverage(mixture, Y, float(level)))
    assert np.isclose(sum(told["y"]["pit"]), 1.0)


def test_evaluate_prints_tables_of_80_columns(folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = ok("evaluate", "two.spngp", "test.csv").stdout
    for word in ("RMSE", "NLPD", "CRPS", "90%", "PIT of z"):
        assert word in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_evaluate_needs_targets(folder, tmp_path):
    (tmp_path / "d.csv").write_text("a,b,kind\n1,2,up\n")
    assert "has no column 'y'" in refused("evaluate", folder / "one.spngp", tmp_path / "d.csv")
    (tmp_path / "d.csv").write_text("a,b,kind,y\n1,2,up,\n")
    assert "target 'y' has no values" in refused("evaluate", folder / "one.spngp", tmp_path / "d.csv")


def test_inspect_shows_what_is_inside(folder, monkeypatch):
    monkeypatch.chdir(folder)
    model = spngp.load("one.spngp")
    told = json.loads(ok("inspect", "one.spngp", "--json").stdout)
    assert told["log_evidence"] == model.log_evidence_
    assert len(told["experts"]) == len(model.regions_)
    assert told["rows"] == 150
    assert np.isclose(sum(told["kernel_weights"].values()), 1.0)
    assert told["inputs"] == ["a", "b", "kind"]
    text = ok("inspect", "one.spngp", "--experts", "3").stdout
    for word in ("log evidence", "SquaredExponential", "category", "max_leaf_size=60", "noise std", "in doubt"):
        assert word in text
    told = json.loads(ok("inspect", "one.spngp", "--json", "--importance").stdout)
    assert set(told["importance"]["y"]) == {"a", "b", "kind"}  # columns, not the inputs they become
    assert "Columns by what they matter" in ok("inspect", "one.spngp", "--importance").stdout
    assert all(len(line) <= 80 for line in text.splitlines())


def test_inspect_tells_where_a_function_jumps(tmp_path):
    x = np.linspace(0.0, 9.0, 60)[:, np.newaxis]
    kernel = SquaredExponential() + PiecewiseConstant(0, [2.5, 7.125])
    model = spngp.SPNGPRegressor(kernel, max_leaf_size=15, hyperparameters="fixed")
    model.fit(x, np.where((x[:, 0] > 2.5) & (x[:, 0] <= 7.125), 1.0, 0.0)).save(tmp_path / "jumps.spngp")
    assert "The function jumps along x0 at 2.5, 7.12." in ok("inspect", tmp_path / "jumps.spngp").stdout
    told = json.loads(ok("inspect", tmp_path / "jumps.spngp", "--json").stdout)["experts"]
    assert sorted(jumps["at"] for one in told for jumps in one["jumps"]) == [[2.5], [7.125]]  # each in its own region


def test_inspect_tells_settings_together(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(40)
    y[7] += 1e3
    model = spngp.SPNGPRegressor(random_state=0).fit(X, y)
    model.save(tmp_path / "small.spngp")
    text = " ".join(ok("inspect", tmp_path / "small.spngp").stdout.split())
    assert f"everywhere: {len(model.regions_)} settings of" in text
    assert "length-scale of x0" in text
    assert "in doubt row 8 of the table" in text
    assert len(model.regions_) > 4


def test_models_saved_from_python_work_too(folder, tmp_path):
    table = columns(folder / "train.csv")
    X, y = np.array([table["a"], table["b"]], dtype=float).T, np.array(table["y"], dtype=float)
    spngp.GPRegressor(hyperparameters="fixed").fit(X, y).save(tmp_path / "gp.spngp")
    (tmp_path / "new.csv").write_text("first,second\n1,2\n")
    ok("predict", tmp_path / "gp.spngp", tmp_path / "new.csv", "-o", tmp_path / "p.csv")
    assert list(columns(tmp_path / "p.csv")) == ["first", "second", "y_mean", "y_std"]
    ok("inspect", tmp_path / "gp.spngp")


# A real process


def test_a_real_process_that_fails(folder):
    """That one succeeds is shown by the README's quick start."""
    environment = {**os.environ, "PYTHONPATH": str(Path(spngp.__file__).parents[1])}
    command = [sys.executable, "-m", "spngp", "predict", str(folder / "one.spngp"), "-", "-o", "nowhere/x.csv"]
    test = (folder / "test.csv").read_bytes()
    result = subprocess.run(command, input=test, capture_output=True, env=environment)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode().splitlines() == ["spngp: nowhere: No such directory; make it first"]


def test_report_writes_a_page_with_the_names_of_the_table(folder, tmp_path):
    pytest.importorskip("plotly")
    page = tmp_path / "page.html"
    result = ok("report", folder / "one.spngp", folder / "test.csv", "-o", page, "--title", "Waves & more")
    assert "open it in a browser" in result.stderr
    text = page.read_text(encoding="utf-8")
    assert "Waves &amp; more" in text
    assert '"name":"kind"' in text
    assert re.search(r'"levels":\[("down"|"up"|"\(not seen\)"|,)*\]', text)
    assert "Rows are called by id." in text  # the column that is no input and tells rows apart
    more = ("--unit", "cm", "--unit", "a=ms", "--id", "b")
    ok("report", folder / "one.spngp", folder / "test.csv", "-o", page, *more)
    text = page.read_text(encoding="utf-8")
    assert "a (ms)" in text
    assert "\u00a0cm on average" in text
    assert "Rows are called by b." in text
    page.write_text("old")
    assert "no column 'order' to name its rows" in refused(
        "report", folder / "one.spngp", folder / "test.csv", "-o", page, "--id", "order"
    )
    assert "units must be of columns or outputs" in refused("report", folder / "one.spngp", "--unit", "c=s", "-o", page)
    assert "No such file" in refused("report", folder / "one.spngp", "none.csv", "-o", page)
    assert "is truncated" in refused("report", _cut(folder / "one.spngp", tmp_path), "-o", page)
    assert page.read_text() == "old"


def _cut(path: Path, folder: Path) -> Path:
    (folder / "cut.spngp").write_bytes(path.read_bytes()[:5000])
    return folder / "cut.spngp"


def test_demo_shows_and_runs_every_step(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = ok("demo", "--no-compare").stdout
    for step in ("fit demo/train.csv", "inspect demo/motorcycle.spngp", "predict demo/motorcycle.spngp", "evaluate"):
        assert f"$ spngp {step}" in text
    assert "\n\nLook at\n  demo/predicted.csv  predictions with 90 % intervals\n" in text
    assert "\n\n\n" not in text
    assert len(columns(tmp_path / "demo" / "predicted.csv")["accel_mean"]) == 33
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("$"))
