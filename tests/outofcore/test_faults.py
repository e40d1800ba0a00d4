"""Fits that are killed, and data that are not what they should be: nothing half done is left behind."""

import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import spngp
from large_rows import job, names, table
from large_rows import model as learning
from spngp._support.directories import put_directory
from spngp.cli.large import first_rows
from spngp.estimators.elsewhere import with_shelf
from spngp.io import ModelFileError, shards
from spngp.io.shards import Directory
from spngp.outofcore import Job, finishing, fit, fit_dataset, predictions
from spngp.outofcore.engines import Threads
from spngp.outofcore.pieces import sampled


def model(**changes):
    """One that learns nothing but what its regions say: these tests are about files."""
    return learning(**{"hyperparameters": "fixed", **changes})


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from large_rows import job, model
from spngp.outofcore import fit
from spngp.outofcore.engines import Threads
from spngp.outofcore.pieces import sampled

class Deadly(Threads):
    def map(self, step, items, advance):
        def counted(item):
            if getattr(step.args[1], "__name__", None) == {step!r} and item[0] == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return step(item)
        return super().map(counted, items, advance)

fit(model(hyperparameters="fixed"), job(Path({path!r})), Deadly(1))
"""


def test_a_killed_fit_goes_on_where_it_was(tmp_path):
    pq.write_table(table(3000), tmp_path / "rows.parquet", row_group_size=1000)
    tests = os.path.dirname(os.path.dirname(__file__))
    code = KILLED.format(tests=tests, step="exchange", path=str(tmp_path))
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "model").exists()
    done = sorted(path.name for path in (tmp_path / ".model.fit" / "done").iterdir())
    assert "route-000002.npz" in done
    resumed = fit(model(), job(tmp_path, resume=True), Threads(1))
    at_once = fit(model(), job(tmp_path, output=tmp_path / "other"), Threads(1))
    assert resumed.log_evidence_ == at_once.log_evidence_
    for shard in (tmp_path / "other" / "shards").iterdir():
        assert shard.read_bytes() == (tmp_path / "model" / "shards" / shard.name).read_bytes()
    assert not (tmp_path / ".model.fit").exists()


def test_a_fit_of_other_data_is_not_gone_on_with(tmp_path):
    pq.write_table(table(3000), tmp_path / "rows.parquet")
    directory = job(tmp_path).directory
    directory.mkdir()
    (directory / "job.json").write_text('{"about": {}, "seed": 1}')
    with pytest.raises(ValueError, match="of another fit"):
        fit(model(), job(tmp_path, resume=True), Threads(1))


def bad(tmp_path, rows):
    """A folder of two partitions, of which the second is bad."""
    folder = tmp_path / "rows"
    folder.mkdir()
    pq.write_table(table(3000), folder / "a.parquet")
    pq.write_table(rows, folder / "b.parquet")
    return job(tmp_path, folder)


def replaced(rows, name, values):
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def test_errors_name_partition_and_column(tmp_path):
    good = table(500, seed=1)
    gaps = good["x1"].to_numpy().copy()
    seed = int(np.random.default_rng(0).integers(2**62))
    gap = int(np.setdiff1d(np.arange(500), sampled(3000, 500, 1500 / 3500, seed))[0])
    gaps[gap] = np.nan
    infinite = good["y0"].to_numpy().copy()
    infinite[3] = np.inf
    texts = pa.array(["a"] * 500)
    cases = [
        (good.drop_columns(["x2"]), "partition b.parquet: there is no column 'x2'"),
        (replaced(good, "x1", texts), "partition b.parquet: column 'x1' must hold a number as in a.parquet, got text"),
        (replaced(good, "x1", pa.array(gaps)), f"partition b.parquet: input 'x1', row {gap} has no value"),
        (replaced(good, "y0", pa.array(infinite)), "partition b.parquet: target 'y0' must be finite, got inf"),
    ]
    weights = pa.array([1.0] * 499 + [-2.0])
    for i, (rows, message) in enumerate(cases):
        path = tmp_path / str(i)
        path.mkdir()
        given = bad(path, rows)
        with pytest.raises(ValueError, match=message):
            fit(model(), Job(**{**vars(given), "most_sampled": 1500}), Threads(1))
        assert sorted(found.name for found in path.iterdir()) == ["rows"]
    with pytest.raises(ValueError, match=r"partition b\.parquet: column 'x1' must hold a number"):
        first_rows(ds.dataset(tmp_path / "1" / "rows"))
    given = bad(tmp_path, replaced(good, "x2", weights))
    with pytest.raises(ValueError, match=r"partition [ab]\.parquet: weights in column 'x2' must be finite and >= 0"):
        fit(model(), Job(**{**vars(given), "inputs": ["x0", "x1"], "weight": "x2"}), Threads(1))
    with pytest.raises(ValueError, match=r"partition a\.parquet: target 'y0' must be positive to be learnt on a log"):
        fit(model(target="log"), given, Threads(1))


def test_empty_partitions_are_passed_over(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    pq.write_table(table(3000).slice(0, 0), folder / "a.parquet")
    pq.write_table(table(3000), folder / "b.parquet")
    assert fit(model(), job(tmp_path, folder), Threads(1)).log_evidence_ != 0
    pq.write_table(table(3000).slice(0, 0), folder / "b.parquet")
    with pytest.raises(ValueError, match="the data set has no rows"):
        fit(model(), job(tmp_path, folder), Threads(1))


@pytest.mark.parametrize("size", [50, 30_000, 60_000])  # for the note of the fit, NumPy's files, shards
def test_a_full_disk_leaves_nothing_behind(size, tmp_path):
    import resource

    pq.write_table(table(3000), tmp_path / "rows.parquet")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))  # as good as full
    try:
        with pytest.raises(OSError, match=r"File too large|requested and"):
            fit(model(), job(tmp_path), Threads(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.parquet"]


def test_a_fit_that_was_killed_when_all_was_done_is_ended_by_resuming_it(tmp_path, monkeypatch):
    """The model it replaced lies where its own was: going on from there would mix the two."""
    pq.write_table(table(3000), tmp_path / "rows.parquet")
    fit(model(), job(tmp_path), Threads(1))
    pq.write_table(table(3000, seed=1), tmp_path / "rows.parquet")
    with monkeypatch.context() as killed:
        killed.setattr(finishing, "discard", lambda directory: None)
        killed.setattr(shards, "put_directory", lambda new, target: put_directory(new, target) and None)
        expected = fit(model(), job(tmp_path), Threads(1))
    assert (tmp_path / ".model.fit" / "job.json").exists()
    assert (tmp_path / ".model.fit" / "model").exists()
    found = fit(model(), job(tmp_path, resume=True), Threads(1))
    assert found.log_evidence_ == expected.log_evidence_
    assert spngp.load(tmp_path / "model", verify=True).log_evidence_ == expected.log_evidence_
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "rows.parquet"]


def test_half_a_model_is_none(tmp_path):
    rows = table(3000)
    pq.write_table(rows, tmp_path / "rows.parquet")
    fit(model(), job(tmp_path), Threads(1))
    shard = tmp_path / "model" / "shards" / "000001.spngp"
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFileError, match=r"is damaged: 000001\.spngp must have"):
        spngp.load(tmp_path / "model")
    shard.write_bytes(whole)
    lazily = spngp.load(tmp_path / "model")
    assert not lazily._learnt.shelf._open  # nothing is read before a row asks for it
    shard.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFileError, match="truncated"):
        lazily.predict(rows.select(names(rows, "x")))
    shard.unlink()
    with pytest.raises(ModelFileError, match=r"000001\.spngp must have .* bytes, got not there"):
        spngp.load(tmp_path / "model")
    (tmp_path / "model" / "model.spngp").unlink()
    with pytest.raises(ModelFileError, match="is a directory, but not a spngp model"):
        spngp.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"structure": "random"}, "out of core structure must be 'compact', got 'random'"),
        ({"n_partitions": 2}, "out of core n_partitions must be 1, got 2"),
        ({"margin": 0.5, "overlap": None}, "out of core margin must be None, got 0.5"),
        ({"target": "auto"}, "out of core target must be None or 'log', got 'auto'"),
    ],
)
def test_what_is_not_done_out_of_core_is_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        fit(model(**changes), Job(dataset=None, inputs=[], targets=[], output=tmp_path / "m"), Threads(1))


def test_data_sets_are_fitted_in_memory_if_they_fit(tmp_path):
    rows = table(5100)
    pq.write_table(rows, tmp_path / "rows.parquet")
    X, y = rows.select(names(rows, "x")), rows["y0"].to_numpy()
    inside = model().fit(str(tmp_path / "rows.parquet"), "y0")
    assert inside.network_.log_evidence == model().fit(X, y).log_evidence_
    outside = model(memory_limit=0.002).fit(iter(rows.to_batches(1000)), "y0")
    assert outside.n_features_in_ == 3
    with pytest.raises(ValueError, match="a model in shards has its network in its shards"):
        _ = outside.network_
    with pytest.raises(ValueError, match="rows cannot come to or leave a model in shards"):
        outside.partial_fit(X.slice(0, 1), y[:1])
    outside.save(tmp_path / "saved")
    expected = outside.predict(X.slice(0, 50))
    np.testing.assert_array_equal(spngp.load(tmp_path / "saved").predict(X.slice(0, 50)), expected)
    directory = outside._learnt.shelf.path
    assert directory.exists()
    del outside
    assert not directory.exists()
    with pytest.raises(ValueError, match="y must be the name of its column"):
        model().fit(str(tmp_path / "rows.parquet"), y)
    with pytest.raises(ValueError, match="no column 'z'"):
        fit_dataset(model(), ds.dataset(tmp_path / "rows.parquet"), "z")


def test_no_more_shards_are_open_than_the_limit_allows(tmp_path):
    rows = table(3000)
    pq.write_table(rows, tmp_path / "rows.parquet")
    fitted = fit(model(), job(tmp_path), Threads(1))
    X = rows.select(names(rows, "x")).slice(0, 200)
    n_cells = fitted._learnt.rows.size
    assert n_cells > 2
    few = with_shelf(fitted, Directory(tmp_path / "model", 0.0, 3, 1))
    np.testing.assert_array_equal(few.predict(X), fitted.predict(X))
    assert len(few._learnt.shelf._open) == 1
    assert len(fitted._learnt.shelf._open) == n_cells
    again = pickle.loads(pickle.dumps(few))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_streamed_predictions_are_those_of_the_model(tmp_path):
    rows = table(3000)
    pq.write_table(rows, tmp_path / "rows.parquet")
    fitted = fit(model(), job(tmp_path), Threads(1))
    X = table(500, seed=3).select(names(rows, "x"))

    def answer(mixture):
        return {"mean": mixture.mean, "std": mixture.std}

    found = list(predictions(fitted, (X.slice(i, 170) for i in range(0, 500, 170)), answer, str(tmp_path)))
    assert [part["mean"].size for part in found] == [170, 170, 160]
    assert not fitted._learnt.shelf._open  # cells are closed when they are done
    expected = fitted.predict_dist(X)
    np.testing.assert_array_equal(np.concatenate([part["std"] for part in found]), expected.std)
    np.testing.assert_array_equal(np.concatenate([part["mean"] for part in found]), expected.mean)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "rows.parquet"]
