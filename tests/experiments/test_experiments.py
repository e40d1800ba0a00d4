"""Experiments: finished cells are kept, pages are whole, and the paper's figures come out on real data."""

import json
import os
import re
import time
from dataclasses import dataclass

import numpy as np
import pytest
from typer.testing import CliRunner

from spngp import SPNGPRegressor, datasets
from spngp._support.provenance import Provenance
from spngp.cli.app import app
from spngp.experiments import NAMES, cells, find, kin40k, model, motorcycle, runner, scaling, uci, variance
from spngp.experiments.cells import Cells
from spngp.experiments.cross_validation import cross_validated
from spngp.experiments.files import csv_text, markdown_table, write_text
from spngp.experiments.measuring import exponent, in_own_process, measure, peak_memory
from spngp.experiments.origin import code_text, origin_text, seconds_text
from spngp.experiments.page import Page
from spngp.experiments.sources import sources_hash
from spngp.predictive import GaussianMixture

FREE = ("n_jobs", "random_state", "verbose")  # arguments that decide about no result


def available(name):
    return datasets.status(datasets.find(name)).available


needs_data = pytest.mark.skipif(
    not all(available(name) for name in ("energy", "kin40k")), reason="needs energy and kin40k in $SPNGP_DATA"
)


@dataclass(frozen=True)
class Settings:
    size: int = 1


class TestCells:
    def test_interrupted_run_goes_on(self, tmp_path):
        computed, said = [], []

        def work(name, interrupt):
            if interrupt:
                raise KeyboardInterrupt
            computed.append(name)
            return [{"name": name}]

        def experiment(interrupt_at):
            kept = Cells(tmp_path, Settings(), said.append)
            return [
                row
                for name in ("a", "b", "c")
                for row in kept.get(name, lambda name=name: work(name, name == interrupt_at))
            ]

        with pytest.raises(KeyboardInterrupt):
            experiment("b")
        assert experiment(None) == [{"name": name} for name in "abc"]
        assert computed == ["a", "b", "c"]
        assert "a: kept" in said

    def test_other_settings_are_computed_anew(self, tmp_path):
        def size_of(size):
            return Cells(tmp_path, Settings(size), lambda line: None).get("cell", lambda: [{"size": size}])

        assert [size_of(1), size_of(2), size_of(2)] == [[{"size": 1}], [{"size": 2}], [{"size": 2}]]

    def test_other_sources_are_computed_anew(self, tmp_path, monkeypatch):
        def first(code):
            monkeypatch.setattr(cells, "sources_hash", lambda: code)
            return Cells(tmp_path, Settings(), lambda line: None).get("cell", lambda: [{"code": code}])

        assert [first("a"), first("b"), first("b")] == [[{"code": "a"}], [{"code": "b"}], [{"code": "b"}]]

    def test_seconds_are_those_of_the_computation(self, tmp_path):
        def run():
            kept = Cells(tmp_path, Settings(), lambda line: None)
            kept.get("slow", lambda: time.sleep(0.05) or [{"x": 1}])
            kept.get("fast", lambda: [{"x": 2}])
            return kept

        first, second = run(), run()
        assert first.seconds == second.seconds >= 0.05
        assert first.seconds_now == first.seconds
        assert second.seconds_now == 0.0

    def test_kept_cells_tell_the_code_they_came_from(self, tmp_path, monkeypatch):
        def commits(commit):
            monkeypatch.setattr(cells, "running_code", lambda: Provenance("0.1", commit, True))
            kept = Cells(tmp_path, Settings(), lambda line: None)
            kept.get("cell", lambda: [{"x": 1}])
            return [code.commit for code in kept.codes]

        assert commits("abc") == ["abc"]
        assert commits("def") == ["abc"]

    @pytest.mark.parametrize("damage", ["", '{"made_by": "x"', "[1, 2]", '{"rows": []}'])
    def test_damaged_file_is_made_again(self, tmp_path, damage):
        (tmp_path / "cell.json").write_text(damage)
        assert Cells(tmp_path, Settings(), lambda line: None).get("cell", lambda: [{"x": 1}]) == [{"x": 1}]
        assert json.loads((tmp_path / "cell.json").read_text())["rows"] == [{"x": 1}]


class TestSources:
    @pytest.fixture
    def package(self, tmp_path):
        for name in ("box.py", "kernels/base.py", "_linalg/native.c", "cli/app.py", "plotting/density.py"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(name)
        return tmp_path

    @pytest.mark.parametrize("name", ["box.py", "kernels/base.py", "kernels/new.py", "_linalg/native.c"])
    def test_what_decides_about_results_counts(self, package, name):
        before = sources_hash(package)
        (package / name).write_text("changed")
        assert sources_hash(package) != before

    @pytest.mark.parametrize("name", ["cli/app.py", "plotting/density.py", "_version.py", "kernels/base.pyc"])
    def test_what_only_shows_does_not(self, package, name):
        before = sources_hash(package)
        (package / name).write_text("changed")
        assert sources_hash(package) == before

    def test_a_moved_line_counts(self, package):
        before = sources_hash(package)
        (package / "box.py").write_text("box.")
        (package / "kernels" / "base.py").write_text("pykernels/base.py")
        assert sources_hash(package) != before


class TestOrigin:
    @pytest.mark.parametrize(
        ("code", "said"),
        [
            (Provenance("0.1.dev3+g12", "1234567890abcdef", True), "spngp 0.1.dev3 at commit 1234567890 (clean tree)"),
            (Provenance("0.1", "1234567890ab", False), "commit 1234567890 (tree with uncommitted changes)"),
            (Provenance("0.1", None, None), "spngp 0.1 (commit unknown)"),
        ],
    )
    def test_commit_and_state_of_the_tree_are_said(self, code, said):
        assert said in code_text(code)

    def test_libraries_and_machine_are_said(self):
        text = origin_text()
        assert f"numpy {np.__version__}" in text
        assert f"{os.cpu_count()} cores" in text

    @pytest.mark.parametrize(("seconds", "said"), [(0.004, "0.004 s"), (3.21, "3.2 s"), (10.4, "10 s"), (291, "291 s")])
    def test_no_time_is_rounded_to_nothing(self, seconds, said):
        assert seconds_text(seconds) == said


class TestFiles:
    def test_failed_write_leaves_the_old_file_and_nothing_else(self, tmp_path):
        path = tmp_path / "page.txt"
        path.write_text("old")
        with pytest.raises(UnicodeEncodeError):
            write_text(path, "half \ud800")
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_tables(self):
        rows = [{"a": 1, "b": 0.123456789}, {"a": 2, "c": "x,y"}]
        assert csv_text(rows) == 'a,b,c\n1,0.123457,\n2,,"x,y"\n'
        assert markdown_table(["m", "v"], [["GP", 0.123456]]) == "| m | v |\n| --- | ---: |\n| GP | 0.1235 |"
        assert markdown_table(["m", "v"], [["GP", float("nan")]]).endswith("| GP | – |")


class TestCommand:
    def test_writes_page_and_figures(self, tmp_path):
        result = CliRunner().invoke(app, ["reproduce", "model", "--quick", "-o", str(tmp_path)])
        assert result.exit_code == 0, result.output
        page = (tmp_path / "model" / "README.md").read_text()
        assert "`spngp reproduce model --quick`" in page
        assert origin_text() in page
        assert "6 induced trees" in page
        assert {path.name for path in (tmp_path / "model").iterdir()} == {"README.md", "model.png"}

    def test_all_files_are_written_on_demand(self, tmp_path):
        result = CliRunner().invoke(app, ["reproduce", "model", "--quick", "--all-files", "-o", str(tmp_path)])
        assert result.exit_code == 0, result.output
        names = {path.name for path in (tmp_path / "model").iterdir()}
        assert names == {"README.md", "model.png", "model.svg", "covariance.csv"}

    def test_second_run_tells_the_time_of_the_first(self, tmp_path, monkeypatch):
        def run(settings, kept):
            return Page("Slow", "", {"slow": kept.get("slow", lambda: time.sleep(0.3) or [{"x": 1}])})

        monkeypatch.setattr(model, "run", run)
        for _ in range(2):
            page = runner.run("model", tmp_path, quick=True, all_files=False, say=lambda line: None).read_text()
            took = re.search(r"computing took ([0-9.]+) s", page)
            assert took is not None, page
            assert float(took[1]) >= 0.3

    def test_unknown_name_lists_the_known(self):
        result = CliRunner().invoke(app, ["reproduce", "nothing"])
        assert result.exit_code == 2
        assert all(name in result.output for name in NAMES)

    def test_missing_data_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SPNGP_DATA", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        if available("concrete"):
            pytest.skip("the data sets are in a cache that this test cannot move")
        result = CliRunner().invoke(app, ["reproduce", "uci", "--quick", "-o", str(tmp_path)])
        assert result.exit_code == 1
        assert "uci: skipped, needs energy, concrete, ccpp" in result.output
        assert not (tmp_path / "uci").exists()

    def test_every_name_has_its_parts(self):
        for name in NAMES:
            module = find(name)
            assert isinstance(module.QUICK, module.Settings)
            assert callable(module.run)
            assert module.__doc__
            assert set(module.DATA) <= set(datasets.REGISTRY)
        assert runner.chosen("all") == NAMES


def test_covariance_of_the_drawn_network_is_that_of_its_trees():
    root, x = model.network(), np.linspace(0.0, 10.0, 15)[:, np.newaxis]
    trees = sum(np.exp(weight) * tree.covariance(x, latent=True) for weight, tree in root.induced_trees())
    np.testing.assert_allclose(root.covariance(x, latent=True), trees, atol=1e-12)


def test_committees_collapse_and_spngp_does_not():
    settings = variance.Settings(n=600, n_test=300)
    few, many = ({row["model"]: row for row in variance._cell(n, 0, settings)} for n in (1, 64))
    honest = few["PoE"]["std_in_hole"]
    assert few["SPN-GP*"]["std_in_hole"] == pytest.approx(honest, rel=1e-6)  # one expert is the full GP
    assert many["PoE"]["std_in_hole"] < 0.4 * honest
    assert many["PoE"]["coverage"] < 0.5
    assert many["SPN-GP*"]["std_in_hole"] >= 0.9 * honest
    assert many["SPN-GP*"]["coverage"] > 0.88
    assert many["SPN-GP*"]["nlpd"] < min(many[rule]["nlpd"] for rule in ("PoE", "gPoE", "BCM", "rBCM"))


@needs_data
def test_table_one_on_a_split_of_energy():
    errors = {name: uci._cell("energy", 0, name, uci.Settings())[0]["rmse"] for name in ("LLS", "Ridge", "SPN-GP*")}
    assert errors["SPN-GP*"] < uci.PRINTED["SPN-GP*", "energy"]
    assert errors["LLS"] == pytest.approx(errors["Ridge"], rel=0.01)


@needs_data
def test_kin40k_committees_are_the_papers():
    settings = kin40k.Settings(n_test=2000)
    found = {row["model"]: row for row in kin40k._committees(64, settings)}
    for rule, printed in kin40k.PRINTED.items():
        if 156 in printed:
            assert found[rule]["rmse"] == pytest.approx(printed[156], rel=0.05)
    (ours,) = kin40k._network(64, 3.0, settings)
    assert ours["rmse"] < 0.15
    assert ours["nlpd"] < min(row["nlpd"] for row in found.values())


def test_cross_validation_predicts_every_row_once_and_unseen():
    X, y = np.arange(23.0)[:, np.newaxis], np.arange(23.0)
    asked = []

    class Model:
        def __init__(self, X, y):
            self.seen = set(X[:, 0])

        def predict_dist(self, X):
            assert self.seen.isdisjoint(X[:, 0])
            assert len(self.seen) + len(X) == 23
            asked.extend(X[:, 0])
            return GaussianMixture(np.zeros((len(X), 1)), X + 2.0, np.ones((len(X), 1)))

    scores = cross_validated(Model, X, y)
    assert sorted(asked) == list(range(23))
    assert scores.n == 23
    assert scores.rmse == pytest.approx(2.0)


def test_what_is_called_default_has_the_default_arguments():
    data = datasets.load("motorcycle")
    made = {
        "motorcycle": motorcycle.models(data, motorcycle.Settings())["SPNGPRegressor()"](),
        "uci": uci.MODELS["SPNGPRegressor()"](uci.Settings(), data, 0),
        "kin40k": kin40k.default_model(),
        "scaling": scaling.MODELS["SPN-GP*"](2),
    }
    deciding = {name: value for name, value in SPNGPRegressor().get_params().items() if name not in FREE}
    for name, model_ in made.items():
        found = {key: value for key, value in model_.get_params().items() if key not in FREE}
        assert found == deciding, name


class TestMeasuring:
    def test_scores_are_in_units_of_y_and_fit_is_apart_from_prediction(self):
        train, test = datasets.regional(300, random_state=0), datasets.regional(200, random_state=1)
        said = []

        class Model:
            def fit(self, X, y):
                np.testing.assert_array_equal(y, train.Y[:, 0])
                said.append("fit")

            def predict_dist(self, X):
                said.append("predict")
                return GaussianMixture(np.zeros((200, 1)), test.function, np.full((200, 1), 0.25))

        row = measure(Model(), 300, 200, lambda: said.append("between"))
        assert said == ["fit", "between", "predict"]
        unit = train.Y.std()
        assert row["truth"] == 0.0
        assert row["RMSE"] == pytest.approx(np.sqrt(np.mean((test.Y - test.function) ** 2)) / unit)
        gauss = 0.5 * np.log(2 * np.pi * 0.25) + 0.5 * np.mean((test.Y - test.function) ** 2) / 0.25
        assert row["NLPD"] == pytest.approx(gauss - np.log(unit))

    def test_own_process_has_its_own_peak_of_memory(self):
        block = np.ones(50_000_000)  # 400 MB here, none of them there
        row = in_own_process(scaling._measured, "SPN-GP*", 100, 50, 1)
        assert 0.0 < row["peak GB"] < peak_memory() - 0.5e-9 * block.nbytes
        assert row["rows"] == 100

    def test_a_process_that_takes_too_long_is_given_up(self):
        with pytest.raises(TimeoutError, match=r"not done within 0\.05 seconds"):
            in_own_process(time.sleep, 30, timeout=0.05)

    def test_exponent_is_that_of_the_upper_sizes(self):
        rows = [{"rows": n, "fit s": max(n, 100) ** 1.5} for n in (1, 10, 100, 1000, 10_000)]
        assert exponent(rows, "fit s", at_least=100) == pytest.approx(1.5)
