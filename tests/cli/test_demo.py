import numpy as np

from spngp import GPRegressor, datasets
from spngp.cli import comparison as demo


def test_demo_prints_a_table_and_writes_a_figure(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    demo.main()
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
    assert np.isfinite(demo.held_out(demo.network().condition, X, y, folds=5)).all()
