"""Every experiment from the command line to its page, on few rows where quick settings take long."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from few_rows import few_rows
from spngp import datasets
from spngp.cli.app import app
from spngp.experiments import NAMES, find, runner

# Settings in place of the quick ones, where those take more than a few seconds.
TOY = {
    "motorcycle": {"folds": 2, "n_grid": 50},
    "uci": {"max_leaf_size": 20},
    "kin40k": {"n_experts": (2, 4), "n_test": 30},
    "scaling": {"spn_rows": (60, 90, 120), "gp_rows": (50, 80), "n_test": 50},
    "variance": {"n": 300, "n_test": 100, "n_experts": (1, 4)},
}


def test_toy_settings_are_of_experiments_that_exist():
    assert set(TOY) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_runs_to_its_page(name, tmp_path, monkeypatch):
    missing = runner.missing_data(name)
    if missing:
        pytest.skip(f"needs {', '.join(missing)} in $SPNGP_DATA")
    module = find(name)
    monkeypatch.setattr(module, "QUICK", replace(module.QUICK, **TOY.get(name, {})))
    if name == "scaling":  # a process for each figure is what tests/experiments/test_experiments.py measures
        monkeypatch.setattr(module, "in_own_process", lambda function, *arguments: function(*arguments))
    monkeypatch.setattr(datasets, "load", few_rows(datasets.load, 30))
    result = CliRunner().invoke(app, ["reproduce", name, "--quick", "-o", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    page = tmp_path / name / "README.md"
    assert page.read_text(encoding="utf-8").startswith("# ")
    assert f"`spngp reproduce {name} --quick`" in page.read_text(encoding="utf-8")
    shown = {path.name for path in page.parent.glob("*.png")}
    assert shown
    assert all(f"({picture})" in page.read_text(encoding="utf-8") for picture in shown)
    assert " nan" not in page.read_text(encoding="utf-8")
