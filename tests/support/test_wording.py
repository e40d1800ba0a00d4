"""One row, two rows: a count agrees with its noun wherever it is shown."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from command_line import ok
from spngp import GPRegressor, SPNGPRegressor
from spngp.gp.exact import ExactGP
from spngp.kernels import SquaredExponential
from spngp.network import Leaf, Sum
from spngp.plotting import CalibrationDisplay, NetworkDisplay, RegionsDisplay

ONE_OF_MANY = re.compile(r"\b1 (rows|regions|experts|inputs|leaves)\b")


def test_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("a,y\n" + "".join(f"{i},{i % 7}\n" for i in range(10)) + "3,\n")
    Path("one.csv").write_text("a\n1\n")
    fit = ok("fit", "d.csv", "-t", "y", "--hyperparameters", "fixed", "-o", "m")
    assert "10 rows, 1 input (a), 1 region, 2 experts" in fit.stdout
    assert "On 1 row held out" in fit.stdout
    assert "d.csv: 1 row without a target is left out" in fit.stderr
    assert "p.csv: 1 row predicted" in ok("predict", "m", "one.csv", "-o", "p.csv").stderr
    assert not ONE_OF_MANY.search(fit.stdout + fit.stderr)


def test_report(tmp_path):
    pytest.importorskip("plotly")
    from spngp.report import write_report

    model = GPRegressor(hyperparameters="fixed").fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    page = write_report(model, tmp_path / "page.html", [[0.5]], [0.5]).read_text(encoding="utf-8")
    assert "Judged by 1 row that it has not seen." in page
    assert "learnt from 3 rows with 1 column" in page
    text = page[: page.index('id="plotly-bundle"')]
    assert not ONE_OF_MANY.search(text)


def texts(display) -> str:
    found = "\n".join(item.get_text() for item in display.figure_.findobj(plt.Text))
    plt.close(display.figure_)
    assert not ONE_OF_MANY.search(found)
    return found


def test_figures():
    X = [[0.0], [1.0], [2.0]]
    each = SPNGPRegressor(max_leaf_size=1, overlap=0, hyperparameters="fixed").fit(X, [0.0, 1.0, 0.0])
    assert "1 row" in texts(RegionsDisplay.from_estimator(each))
    assert "1 row" in texts(NetworkDisplay.from_estimator(each))
    alone = Sum([Leaf(SquaredExponential(), noise_variance=1.0)])
    assert "1 leaf" in texts(NetworkDisplay.from_network(alone, max_depth=0))
    assert "1 row" in texts(CalibrationDisplay([0.3]).plot())


def test_in_python():
    leaf = ExactGP(SquaredExponential(), 1.0).condition([[0.0]], [1.0])
    assert repr(leaf).endswith("noise_variance=1, 1 row)")
    assert "1 row)" in repr(Leaf(SquaredExponential(), noise_variance=1.0).condition([[0.0]], [1.0]))
