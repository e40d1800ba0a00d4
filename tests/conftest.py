"""Shared by all tests: BLAS held at one thread, so that sums come out the same on every machine."""

import os

import pytest
from threadpoolctl import threadpool_limits

os.environ.setdefault("MPLBACKEND", "Agg")  # figures are drawn without a window


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield
