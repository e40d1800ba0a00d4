import numpy as np
import pytest

from spngp import GPRegressor, datasets, demo


def test_motorcycle_is_silvermans_data():
    data = datasets.load("motorcycle")
    assert data.X.shape == data.Y.shape == (133, 1)
    assert data.X[[0, -1], 0].tolist() == [2.4, 57.6]
    assert data.Y.min() == -134.0
    assert data.Y.max() == 75.0


def test_an_unknown_data_set_names_the_known_ones():
    with pytest.raises(ValueError, match="unknown data set 'iris'; known are motorcycle"):
        datasets.load("iris")


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
