"""Threads: BLAS is held at one while leaves are worked on, and not one bit depends on how many there are."""

import subprocess
import sys
import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import spngp._linalg.square  # noqa: F401 loads the BLAS libraries whose threads are looked at
from spngp._support.threads import map_leaves, one_blas_thread


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("BLAS has one thread only")
        yield


def test_calls_that_overlap_in_bad_order_leave_blas_as_it_was(two_blas_threads):
    second_is_in, first_is_out = threading.Event(), threading.Event()
    seen = {}

    def second():
        with one_blas_thread():
            second_is_in.set()
            assert first_is_out.wait(10)
            seen["after the first is out"] = blas_threads()

    thread = threading.Thread(target=second)
    with one_blas_thread():
        thread.start()
        assert second_is_in.wait(10)
        seen["both in"] = blas_threads()
    first_is_out.set()
    thread.join()
    assert seen == {"both in": {1}, "after the first is out": {1}}
    assert blas_threads() == {2}


def test_nested_holds_and_errors_leave_blas_as_it_was(two_blas_threads):
    with pytest.raises(ZeroDivisionError), one_blas_thread(), one_blas_thread():
        raise ZeroDivisionError
    assert blas_threads() == {2}
    for n_jobs in (None, 1, 2):
        assert map_leaves(lambda _: blas_threads(), [0, 1], n_jobs) == [{1}, {1}]
        assert blas_threads() == {2}


def test_many_threads_at_once_leave_blas_as_it_was(two_blas_threads):
    start = threading.Barrier(6)
    seen = []

    def hold():
        start.wait()
        for _ in range(30):
            with one_blas_thread():
                seen.append(blas_threads() == {1})

    threads = [threading.Thread(target=hold) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 180
    assert all(seen)
    assert blas_threads() == {2}


BITS = """
import hashlib
import numpy as np
from threadpoolctl import threadpool_limits
from spngp import SPNGPRegressor
from spngp.kernels import Linear, Matern, SquaredExponential
from spngp.network import Leaf, Product, Split, Sum

rng = np.random.default_rng(0)
X, Y = rng.uniform(-1, 1, (600, 3)), rng.standard_normal((600, 2))
X_new = rng.uniform(-1, 1, (250, 3))

def mixture(output):
    smooth = Leaf(SquaredExponential([0.7, 0.5, 0.9]) + Linear(), 0.3, output)
    return Sum([smooth, Split(0, [0.1], [smooth, Leaf(Matern(1.5, 0.8), 0.2, output)])])

prior = Product([mixture(0), mixture(1)])
model = SPNGPRegressor(max_leaf_size=300, hyperparameters="fixed", random_state=0, overlap=0.5)
found = {}
for blas, n_jobs in ((1, None), (2, None), (2, 2)):
    with threadpool_limits(blas, user_api="blas"):
        posterior = prior.condition(X, Y, margin=0.1, n_jobs=n_jobs)
        updated = posterior.condition(X_new, Y[:250], n_jobs=n_jobs)
        dist = posterior.predict_dist(X_new, n_jobs=n_jobs)
        answers = {
            "evidence": np.array([posterior.log_evidence, updated.log_evidence]),
            "predict_dist": np.stack([dist.log_weights, dist.means, dist.variances]),
            "covariance": posterior.covariance(X_new),
            "sample": posterior.sample(X_new, 3, 0),
            "updated": updated.predict_dist(X_new, n_jobs=n_jobs).means,
        }
        model.set_params(n_jobs=n_jobs).fit(X, Y[:, 0])
        answers["SPNGPRegressor.predict"] = np.stack(model.predict(X_new, return_std=True))
        answers["SPNGPRegressor.sample_y"] = model.sample_y(X_new, 2, 0)
    for name, values in answers.items():
        found.setdefault(name, set()).add(hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest())
print(sorted(name for name, hashes in found.items() if len(hashes) > 1))
"""


def test_no_bit_depends_on_n_jobs_or_on_the_threads_of_blas(monkeypatch):
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "2")
    run = subprocess.run([sys.executable, "-c", BITS], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
