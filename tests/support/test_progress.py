import io
import sys

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.kernels import SquaredExponential


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def model():
    return SPNGPRegressor(SquaredExponential(), max_leaf_size=20, random_state=0, verbose=1)


X = np.linspace(0, 1, 60)[:, np.newaxis]


def test_a_terminal_sees_stages_and_steps(model, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    model.fit(X, np.sin(X[:, 0]))
    shown = terminal.getvalue()
    assert "spngp: tied parameters" in shown
    assert "spngp: experts" in shown
    assert "/4" in shown  # four leaves


def test_a_log_sees_nothing(model, capsys):
    model.fit(X, np.sin(X[:, 0]))
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
