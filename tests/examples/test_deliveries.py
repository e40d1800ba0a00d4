"""The deliveries, at toy size: the script from its arguments to its last line, and the shell lines of its docstring."""

from __future__ import annotations

import csv
import importlib.util
import shlex
from functools import partial
from pathlib import Path

import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from command_line import ok
from spngp import SPNGPRegressor

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "deliveries.py"


@pytest.fixture(scope="module")
def deliveries():
    spec = importlib.util.spec_from_file_location("deliveries", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_compares(deliveries, capsys, monkeypatch):
    monkeypatch.setattr(deliveries, "N_ABSURD", 2)
    monkeypatch.setattr(deliveries, "SPNGPRegressor", partial(SPNGPRegressor, hyperparameters="tied"))
    few_trees = partial(HistGradientBoostingRegressor, categorical_features="from_dtype", max_iter=5)
    peers = {"HistGradientBoosting": lambda seed: few_trees(random_state=seed)}
    monkeypatch.setattr(deliveries, "boosters", lambda: peers)
    code = deliveries.main(["--seeds", "1", "--rows", "240"])
    told = capsys.readouterr().out
    assert code in (0, 1)  # 1: off on a toy
    assert "2 of 2 absurd outputs found" in told
    assert "HistGradientBoosting: RMSE" in told
    assert told.splitlines()[-1].startswith("intervals hold 87 to 93 % and RMSE is lowest on ")


def test_the_shell_lines(deliveries, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    deliveries.main(["--rows", "240", "--write", "deliveries"])
    monkeypatch.chdir("deliveries")
    lines = [line.strip() for line in deliveries.__doc__.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("spngp ")]
    assert [command[0] for command in commands] == ["fit", "inspect", "evaluate", "predict", "report"]
    fitted, *rest = commands
    result = ok(*fitted, "--hyperparameters", "fixed", "--outliers", "trust")
    # the sizes are declared; a moment never comes twice, and neither do ids
    assert "guessed --id order_id --date ordered_at --category city,courier,rain" in result.stderr
    assert "left out, as it looks like an identifier: 'order_id'" in result.stderr
    told = [ok(*command) for command in rest]
    assert "courier" in told[0].stdout
    assert "has no 'weight_kg': taken as missing in every row" in told[2].stderr
    with open("predicted.csv", newline="", encoding="utf-8") as file:
        header = next(csv.reader(file))
    assert header == ["order_id", "minutes_mean", "minutes_std", "minutes_low0.9", "minutes_high0.9"]
    assert Path("report.html").stat().st_size > 1000
