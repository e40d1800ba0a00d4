"""``spngp fit`` and ``spngp predict`` of what does not fit into memory."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spngp
from command_line import QUICK, ok, refused

FIT = ["--target", "y", "--id", "n", "--category", "place", *QUICK, "--overlap", "1", "--jobs", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(6000, 2))
    place = np.array(["north", "south"])[rng.integers(2, size=6000)]
    y = np.sin(5 * X[:, 0]) + (place == "south") + 0.1 * rng.normal(size=6000)
    rows = pa.table({"a": X[:, 0], "b": X[:, 1], "place": place, "n": np.arange(6000), "y": y})
    pq.write_table(rows, path / "rows.parquet", row_group_size=2000)
    pq.write_table(rows.slice(0, 500), path / "new.parquet")
    summary = ok("fit", path / "rows.parquet", *FIT, "--memory-limit", "0.003", "-o", path / "model", "--json")
    return path, json.loads(summary.stdout), summary.stderr


def test_a_table_beyond_the_limit_becomes_a_directory(folder):
    path, summary, told = folder
    assert (summary["rows"], summary["inputs"], summary["held_out"]) == (6000, ["a", "b", "place"], {})
    assert not told
    model = spngp.load(path / "model")
    assert model.table_.targets == ("y",)
    assert summary["experts"] == len(model.regions_)
    assert summary["bytes"] == sum(shard.stat().st_size for shard in (path / "model" / "shards").iterdir())


def test_predict_streams_in_the_order_of_the_rows(folder, tmp_path):
    path, _, _ = folder
    ok("predict", path / "model", path / "new.parquet", "--interval", "0.9", "-o", tmp_path / "out.parquet")
    found, rows = pq.read_table(tmp_path / "out.parquet"), pq.read_table(path / "new.parquet")
    mean, low, _ = spngp.load(path / "model").predict(rows.select(["a", "b", "place"]), interval=0.9)
    assert found["n"].to_pylist() == list(range(500))
    np.testing.assert_array_equal(found["y_mean"].to_numpy(), mean)
    np.testing.assert_array_equal(found["y_low0.9"].to_numpy(), low)
    ok("evaluate", path / "model", path / "new.parquet")
    assert "6,000" in ok("inspect", path / "model").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "spark"], "must be memory, outofcore or dask, got 'spark'"),
        (["--scheduler", "tcp://127.0.0.1:9"], "goes with --engine dask"),
        (["--resume", "--engine", "memory"], "goes with --engine outofcore or dask"),
        (["--engine", "outofcore", "--weight", "b"], "weights in column 'b' must be finite and >= 0, got -"),
        (["--engine", "outofcore", "--structure", "random"], "out of core structure must be 'compact'"),
    ],
)
def test_wrong_options(folder, tmp_path, arguments, message):
    path, _, _ = folder
    assert message in refused("fit", path / "rows.parquet", *FIT, *arguments, "-o", tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_directory_that_is_no_model_is_left_alone(folder, tmp_path):
    path, _, _ = folder
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.txt").write_text("mine")
    line = refused("fit", path / "rows.parquet", *FIT, "--engine", "outofcore", "-o", tmp_path / "model")
    assert "is a directory that is no model" in line
    assert (tmp_path / "model" / "mine.txt").read_text() == "mine"
