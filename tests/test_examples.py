"""The examples run from end to end, on few rows."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"


def example(name):
    specification = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.long
def test_the_drifting_series_is_streamed_and_animated(tmp_path, capsys):
    arguments = ["--rows", "40", "--frames", "2", "--window", "20", "-o", str(tmp_path / "series.gif")]
    output = example("drifting_series").main(arguments)
    assert output.read_bytes().startswith(b"GIF8")
    assert (tmp_path / "series.png").stat().st_size > 10_000
    assert "last rows: RMSE 0." in capsys.readouterr().out
