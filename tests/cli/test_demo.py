import pytest

from spngp import GPRegressor, datasets
from spngp.cli import comparison as demo
from spngp.experiments.cross_validation import cross_validated


@pytest.mark.long
def test_demo_prints_a_table_and_writes_a_figure(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    demo.main(folds=2)
    printed = capsys.readouterr().out
    assert "Single GP" in printed
    assert "12 ways to cut" in printed
    assert "SPNGPRegressor" in printed
    assert (tmp_path / demo.FIGURE).read_bytes().startswith(b"\x89PNG")


def test_the_network_explains_the_data_better_than_one_gp():
    data = datasets.load("motorcycle")
    X, y = data.X, data.Y[:, 0]
    single = GPRegressor(random_state=0).fit(X, y)
    assert demo.network().condition(X, y).log_evidence > single.log_evidence_ + 20
    scores = cross_validated(demo.network().condition, X, y, folds=5)
    assert scores.n == y.size
    assert scores.nlpd < cross_validated(lambda X, y: GPRegressor(random_state=0).fit(X, y), X, y, folds=5).nlpd
