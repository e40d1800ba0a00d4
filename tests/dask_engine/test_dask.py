"""Fits and predictions on a local cluster of two worker processes; workers and clusters that are killed."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spngp
from spngp import SPNGPRegressor

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402

from spngp.dask import DaskSPNGPRegressor, engine  # noqa: E402
from spngp.dask.engine import cluster  # noqa: E402

# of Dask's own; and of processes that are killed, whose sockets nobody closes
pytestmark = pytest.mark.filterwarnings("ignore")
PARAMETERS = {"max_leaf_size": 60, "overlap": 1.0, "random_state": 0}
QUICK = {**PARAMETERS, "hyperparameters": "fixed"}  # where it is about files and processes


@pytest.fixture(scope="module")
def client():
    with cluster(None, 2, 4.0) as found:
        yield found


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(3000, 3)), columns=list("abc"))
    X["place"] = np.array(["north", "south"])[rng.integers(2, size=3000)]
    y = np.sin(2 * X["a"]) * X["b"] + (X["place"] == "south") + 0.1 * rng.normal(size=3000)
    return X, y.rename("y")


@pytest.fixture(scope="module")
def expected(rows):
    return SPNGPRegressor(**PARAMETERS).fit(*rows)


@pytest.fixture(scope="module")
def fitted(client, rows):
    X, y = (dd.from_pandas(part, npartitions=4) for part in rows)
    return DaskSPNGPRegressor(client, **PARAMETERS).fit(X, y)


@pytest.fixture(scope="module")
def quick(client, rows):
    X, y = (dd.from_pandas(part, npartitions=4) for part in rows)
    return DaskSPNGPRegressor(client, **QUICK).fit(X, y)


def test_equals_the_fit_in_memory(fitted, expected, rows):
    X = rows[0].iloc[:400]
    assert fitted.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-12)
    np.testing.assert_allclose(fitted.to_local().predict_dist(X).std, expected.predict_dist(X).std, rtol=1e-10)


def test_predictions_are_lazy_and_small(fitted, expected, rows):
    X = dd.from_pandas(rows[0].iloc[:900], npartitions=3)
    mean, std, low, high = fitted.predict(X, return_std=True, interval=0.9)
    assert all(part.npartitions == 3 for part in (mean, std, low, high))
    graph = sum(len(distributed.protocol.pickle.dumps(task)) for task in mean.optimize().__dask_graph__().values())
    own = sum(len(distributed.protocol.pickle.dumps(task)) for task in X.optimize().__dask_graph__().values())
    assert graph - own < 20_000  # bytes: no model in it
    computed = dask.compute(mean, std, low, high)  # a partition is predicted once for all of them
    for found, wanted in zip(computed, expected.predict(rows[0].iloc[:900], True, interval=0.9), strict=True):
        assert list(found.index) == list(range(900))
        np.testing.assert_allclose(found.to_numpy(), wanted, rtol=1e-8, atol=1e-8)
    levels = fitted.predict(X, quantiles=[0.1, 0.5]).compute()
    assert list(levels.columns) == ["q0.1", "q0.5"]


def test_arrays_and_conventions(client):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=2000)
    lazy = da.from_array(X, chunks=(600, 2))
    model = DaskSPNGPRegressor(client, max_leaf_size=60, random_state=0, hyperparameters="fixed")
    assert model.get_params()["max_leaf_size"] == 60
    assert model.set_params(overlap=1.0) is model
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(lazy)
    known = {"sample_weight": rng.integers(0, 3, 2000), "y_variance": rng.uniform(0.0, 0.1, 2000)}
    model.fit(lazy, da.from_array(y, chunks=600), **{name: da.from_array(of, chunks=600) for name, of in known.items()})
    local = SPNGPRegressor(**QUICK).fit(X, y, **known)
    mean, std = model.predict(lazy, return_std=True)
    assert mean.chunks[0] == (600, 600, 600, 200)
    np.testing.assert_allclose(std.compute(), local.predict(X, return_std=True)[1], rtol=1e-9)
    assert model.predict(lazy, quantiles=[0.1, 0.9]).compute().shape == (2000, 2)
    assert isinstance(model.to_local(), SPNGPRegressor)


def killed_when(client, found):
    """Kill a worker as soon as ``found()`` is true, in a thread; the list of what was killed."""
    pids, gone = list(client.run(os.getpid).values()), []

    def watch():
        end = time.monotonic() + 60
        while time.monotonic() < end and not gone:
            if found():
                os.kill(pids[0], signal.SIGKILL)
                gone.append(pids[0])
            time.sleep(0.002)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread, gone


@pytest.mark.parametrize("step", [pytest.param("route", marks=pytest.mark.long), "learn"])
def test_a_worker_that_is_killed_loses_nothing_but_its_own_steps(client, rows, quick, tmp_path, step):
    client.wait_for_workers(2)
    X, y = (dd.from_pandas(part, npartitions=8) for part in rows)
    thread, gone = killed_when(client, lambda: any(tmp_path.glob(f"*/.model.fit/done/{step}-*.npz")))
    model = DaskSPNGPRegressor(client, tmp_path, **QUICK).fit(X, y)
    thread.join()
    assert gone
    for shard in (quick.path_ / "shards").iterdir():
        assert shard.read_bytes() == (model.path_ / "shards" / shard.name).read_bytes()
    assert model.log_evidence_ == quick.log_evidence_
    assert [path.name for path in model.path_.parent.iterdir()] == ["model"]


@pytest.mark.long
def test_a_killed_cluster_is_resumed(rows, quick, tmp_path):
    table = pa.Table.from_pandas(rows[0].assign(y=rows[1]), preserve_index=False)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=1200)
    options = ["--target", "y", "--max-leaf-size", "60", "--overlap", "1", "--jobs", "1", "--engine", "dask"]
    options += ["--hyperparameters", "fixed"]
    command = [sys.executable, "-m", "spngp", "fit", "rows.parquet", *options, "-o", "model"]
    running = subprocess.Popen(command, cwd=tmp_path, start_new_session=True, stderr=subprocess.DEVNULL)
    while not any((tmp_path / ".model.fit").glob("done/learn-*.npz")):
        assert running.poll() is None
        time.sleep(0.005)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert not (tmp_path / "model").exists()
    subprocess.run([*command, "--resume"], cwd=tmp_path, check=True, capture_output=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "rows.parquet"]
    assert spngp.load(tmp_path / "model").log_evidence_ == quick.log_evidence_


def test_bad_partitions_are_named(client, rows, tmp_path):
    X, y = rows[0].iloc[:900], rows[1].iloc[:900]
    model = DaskSPNGPRegressor(client, tmp_path, **PARAMETERS)
    fewer = dd.from_delayed(
        [dask.delayed(X.iloc[:300]), dask.delayed(X.iloc[300:].drop(columns="b"))], meta=X.iloc[:0], verify_meta=False
    )
    outputs = dd.from_delayed([dask.delayed(y.iloc[:300]), dask.delayed(y.iloc[300:])], meta=y.iloc[:0])
    with pytest.raises(ValueError, match="partition 1: columns must be a, b, c, place, got a, c, place"):
        model.fit(fewer, outputs)
    other = X.iloc[300:].assign(b="text")
    mixed = dd.from_delayed([dask.delayed(X.iloc[:300]), dask.delayed(other)], meta=X.iloc[:0], verify_meta=False)
    with pytest.raises(ValueError, match=r"partition partition-000001\.arrow: column 'b' must hold a number"):
        model.fit(mixed, outputs)
    array = rows[0][["a", "b"]].to_numpy().copy()
    array[700, 1] = np.nan
    with pytest.raises(ValueError, match="partition 1: column 'x1' contains NaN"):
        model.fit(da.from_array(array, chunks=(600, 2)), da.from_array(rows[1].to_numpy(), chunks=600))
    with pytest.raises(ValueError, match="X and y must have the same partitions, got 2 and 3"):
        model.fit(fewer, dd.from_pandas(y, npartitions=3))
    with pytest.raises(TypeError, match="must be Dask DataFrames or Arrays, got a DataFrame"):
        model.fit(X, y)
    assert not list(tmp_path.iterdir())


class Answers:
    """A client whose workers answer so."""

    def __init__(self, **answers):
        self.answers = answers

    def run(self, function, *arguments, on_error):
        assert on_error == "return"
        return self.answers


def test_a_worker_that_dies_when_it_is_asked_is_not_waited_for(tmp_path):
    gone = distributed.comm.CommClosedError("Stream is closed")
    engine.Workers(Answers(one=gone, other=True), tmp_path / "a")
    with pytest.raises(ValueError, match="worker other does not see"):
        engine.Workers(Answers(one=gone, other=False), tmp_path / "b")
    with pytest.raises(ValueError, match="the Dask cluster has no workers"):
        engine.Workers(Answers(), tmp_path / "c")
    with pytest.raises(TypeError, match="wrong"):
        engine.Workers(Answers(one=TypeError("wrong")), tmp_path / "d")


def test_a_scheduler_that_does_not_answer(monkeypatch):
    assert engine._SECONDS < 30
    monkeypatch.setattr(engine, "_SECONDS", 0.5)
    silent = socket.create_server(("127.0.0.1", 0))  # takes connections, and says nothing
    with silent:
        for port in (9, silent.getsockname()[1]):
            began, address = time.monotonic(), f"tcp://127.0.0.1:{port}"
            with (
                pytest.raises(ValueError, match=f"no Dask scheduler answers at {address}"),
                cluster(address, 1, 1.0),
            ):
                pass
            assert time.monotonic() - began < 30  # it is given up after half a second; machines may be busy
