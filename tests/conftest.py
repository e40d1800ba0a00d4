"""Shared by all tests: BLAS held at one thread, so that sums come out the same on every machine."""

import os

import pytest
from threadpoolctl import threadpool_limits

from spngp._linalg import compiled as _compiled

os.environ.setdefault("MPLBACKEND", "Agg")  # figures are drawn without a window

# Files of half a minute and more. They come first, so that no process waits for another one's at the end.
LONGEST = ("test_soak.py", "test_markdown.py", "test_dask.py", "test_report_browser.py", "test_estimators.py")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(params=["compiled", "numpy"])
def formulas(request, monkeypatch):
    """A test that uses it runs twice: with the compiled library, and as where it could not be compiled."""
    if request.param == "numpy":
        monkeypatch.setattr(_compiled, "library", None)
    elif _compiled.library is None:
        pytest.skip("there is no compiled library")
    return request.param
