"""The report file: what it says is what the model says, and nothing in it comes from elsewhere or does harm."""

import base64
import json
import re

import numpy as np
import pytest

from spngp import GPRegressor, SPNGPRegressor, datasets, metrics
from spngp.plotting.expert_regions import expert_regions
from spngp.plotting.lines import one_output
from spngp.report import write_report
from spngp.report.accuracy import Scores
from spngp.report.text import json_for_html, name, number, packed, table

pytest.importorskip("plotly")
pd = pytest.importorskip("pandas")

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "%{x} $x$ &lt;b&gt; {{title}}",
    "two\nlines <!-- ",
]


@pytest.fixture(scope="module")
def hostile():
    """Names that try to be code, two outputs, one with gaps, and rows beyond the training range."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(160, 4)), columns=HOSTILE)
    Y = np.column_stack([np.sin(X.iloc[:, 0]), X.iloc[:, 1] ** 2]) + 0.1 * rng.standard_normal((160, 2))
    Y[::9, 1] = np.nan
    X.iloc[-1, 2] = 9.0
    Y = pd.DataFrame(Y, columns=["<b onclick=alert(1)>y", "y & z"])
    model = SPNGPRegressor(max_leaf_size=60, hyperparameters="fixed", random_state=0).fit(X[:120], Y[:120])
    return model, X[120:], Y[120:]


@pytest.fixture(scope="module")
def page(hostile, tmp_path_factory):
    model, X, Y = hostile
    names = [f"sample {i}" for i in range(40)]
    return write_report(model, tmp_path_factory.mktemp("page") / "r.html", X, Y, title="<i>&</i>", row_names=names)


def _without_bundle(page: str) -> str:
    return re.sub(r'(id="plotly-bundle">)[^<]*', r"\1", page)


def _data(page: str):
    return json.loads(re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL)[1])


def _unpacked(spec):
    return np.frombuffer(base64.b64decode(spec["bdata"]), dtype=spec["dtype"])


def test_report_agrees_with_the_model(hostile, page):
    model, X, Y = hostile
    page = page.read_text(encoding="utf-8")
    mixture = model.predict_dist(X)
    data = _data(page)
    assert data["outputs"] == list(Y.columns)
    for k in range(2):
        charts, observed = data["charts"][k], ~np.isnan(Y.to_numpy()[:, k])
        assert charts["calibration"]["rows"] == observed.sum()
        np.testing.assert_allclose(_unpacked(charts["calibration"]["predicted"]), mixture.mean[observed, k])
        item = charts["slices"]["items"][0]
        feature = charts["slices"]["order"][0]
        rows = np.tile(np.quantile(model.X_train_, 0.95, axis=0), (72, 1))
        rows[:, feature] = _unpacked(item["x"])
        expected = model.predict_dist(pd.DataFrame(rows, columns=HOSTILE))
        np.testing.assert_allclose(_unpacked(item["steps"][4]["mean"]), expected.mean[:, k], rtol=1e-5, atol=1e-6)
        shade = _unpacked(item["steps"][4]["density"]).reshape(72, 72)
        assert (shade.max(axis=0) == 255).all()
        levels = _unpacked(charts["slices"]["levels"])
        density = one_output(expected, k).density(levels).T
        np.testing.assert_allclose(shade, 255 * np.sqrt(density / density.max(axis=0)), atol=1.0)
        regions = expert_regions(model, k)
        assert [item["rows"] for item in charts["regions"]["items"]] == [
            region.rows for region in regions if region.rows * region.weight > 1e-3
        ]
        assert sum(region.rows * region.weight for region in regions) == pytest.approx(
            (~np.isnan(model.y_train_.reshape(len(model.X_train_), -1)[:, k])).sum()
        )
    for k in range(2):
        observed = ~np.isnan(Y.to_numpy()[:, k])
        part = model.predict_dist(X[observed])
        assert f">{number(metrics.nlpd(one_output(part, k), Y.to_numpy()[observed, k]))}<" in page


def test_the_lowest_density_is_the_first_surprise(hostile, page):
    model, X, Y = hostile
    page = page.read_text(encoding="utf-8")
    density = model.predict_dist(X).logpdf(Y.to_numpy())[:, 0]
    first = re.search(r"Largest surprises</caption>.*?<tbody><tr><th[^>]*>(.*?)</th>", page, re.DOTALL)[1]
    assert first == f"sample {np.argmin(density)}"
    assert 'title="outside the training range' in page  # the row at 9


def test_names_from_data_stay_text(page):
    page = page.read_text(encoding="utf-8")
    rest = _without_bundle(page)
    assert "<title>&lt;i&gt;&amp;&lt;/i&gt;</title>" in page
    assert rest.count("<script") == 3
    assert rest.count("</script") == 3
    assert "<img" not in rest
    assert "<b onclick" not in rest
    assert "<!-- " not in rest
    assert "two lines" in rest
    assert "{{title}}" in rest  # a name, not a place to fill in


def test_nothing_is_fetched(page):
    assert page.stat().st_size < 5_000_000
    rest = _without_bundle(page.read_text(encoding="utf-8"))
    assert "default-src 'none'" in rest
    assert not re.search(r"https?://", rest)
    assert set(re.findall(r'href="([^#"][^"]*)"', rest)) == {"data:,"}
    assert 'src="' not in rest


def test_report_without_held_out_rows_makes_no_claim(tmp_path):
    data = datasets.load("motorcycle")
    model = GPRegressor(hyperparameters="fixed").fit(data.X, data.Y[:, 0])
    page = write_report(model, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "says nothing about accuracy" in page
    assert "RMSE</dt>" not in page
    found = _data(page)
    assert found["charts"][0]["calibration"] is None
    assert found["charts"][0]["slices"]["quantiles"] == [50]
    np.testing.assert_allclose(np.sort(_unpacked(found["charts"][0]["slices"]["y"])), np.sort(data.Y[:, 0]), atol=1e-9)


def test_an_output_never_observed_is_left_open(hostile, tmp_path):
    model, X, Y = hostile
    page = write_report(model, tmp_path / "report.html", X.to_numpy(), Y.assign(**{"y & z": np.nan})).read_text("utf-8")
    found = _data(page)
    assert found["charts"][0]["calibration"]["rows"] == 40
    assert found["charts"][1]["calibration"] is None


@pytest.mark.parametrize("n", [1, 2, 30])
def test_little_data_make_a_report_too(n, tmp_path):
    X, y = [[1.0 + 0.0 * i, 2.0] for i in range(n)], [float(i) for i in range(n)]  # no input ever changes
    model = SPNGPRegressor(max_leaf_size=10, hyperparameters="fixed").fit(X, y)
    found = _data(write_report(model, tmp_path / "report.html", X, y).read_text(encoding="utf-8"))
    assert found["charts"][0]["slices"]["items"] == []
    assert found["charts"][0]["calibration"]["rows"] == n


def test_the_same_model_gives_the_same_page(hostile, tmp_path):
    model, X, Y = hostile
    one, other = (write_report(model, tmp_path / f"{i}.html", X, Y).read_bytes() for i in range(2))
    assert one == other


def test_more_rows_than_are_looked_at_are_sampled(hostile, tmp_path, monkeypatch):
    model, X, Y = hostile
    monkeypatch.setattr("spngp.report.judged._HELD_OUT_ROWS", 25)
    page = write_report(model, tmp_path / "report.html", X, Y).read_text(encoding="utf-8")
    assert "On 25 rows it had not seen (a random sample out of 40)" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": "X"}, "X and y must be given together, got no y"),
        ({"X": "X", "y": "one"}, "y must have the model's 2 outputs, got 1"),
        ({"X": "swapped", "y": "Y"}, "X must have the columns"),
        ({"X": "X", "y": "missing"}, "at least one value that is not missing"),
        ({"output_names": ["a"]}, r"output_names must have one name per output \(2\), got 1"),
        ({"X": "X", "y": "Y", "row_names": ["a"]}, r"row_names must have one name per row \(40\), got 1"),
    ],
)
def test_bad_arguments_leave_the_old_file_alone(hostile, tmp_path, arguments, message):
    model, X, Y = hostile
    values = {"X": X, "Y": Y, "one": Y.iloc[:, 0], "swapped": X[HOSTILE[::-1]], "missing": Y * np.nan}
    given = {key: values[value] if isinstance(value, str) else value for key, value in arguments.items()}
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match=message):
        write_report(model, path, **given)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_nothing_behind(hostile, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(hostile[0], path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_only_fitted_models_of_ours_are_reported(tmp_path):
    from sklearn.exceptions import NotFittedError
    from sklearn.linear_model import LinearRegression

    with pytest.raises(NotFittedError):
        write_report(SPNGPRegressor(), tmp_path / "report.html")
    with pytest.raises(TypeError, match="must be a fitted SPNGPRegressor or GPRegressor, got LinearRegression"):
        write_report(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "report.html")


@pytest.mark.parametrize(
    ("n", "share", "verdict"),
    [
        (100, 0.91, "which chance allows"),
        (100, 0.80, "too few: they are too narrow"),
        (10_000, 0.94, "slightly too few"),
        (10_000, 0.999, "more than need be: they are too wide"),
    ],
)
def test_the_verdict_allows_for_chance(n, share, verdict):
    scores = Scores(n=n, rmse=1.0, r2=0.5, nlpd=1.0, crps=1.0, coverage={0.95: share}, width=1.0)
    assert scores.verdict == verdict


def test_text_is_safe_and_short():
    assert name("a\x00b\nc" + "d" * 100) == "a b c" + "d" * 54 + "…"
    assert name("  ") == "(no name)"
    assert json.loads(json_for_html({"a": "</script>\u2028"})) == {"a": "</script>\u2028"}
    assert [packed(np.array([size]))["dtype"] for size in (0.0, 1.0, 1e40, 1e-40)] == ["f4", "f4", "f8", "f8"]
    assert "\u2028" not in json_for_html("\u2028")
    with pytest.raises(ValueError, match="Out of range"):
        json_for_html(float("nan"))
    assert "&lt;b&gt;" in table(["<b>"], [["<b>", "<b>"]], "<b>")
    assert "<b>" not in table(["<b>"], [["<b>", "<b>"]], "<b>")
    assert [number(value) for value in (999999.0, 0.00012346, 1e12, -1e-12, 99999.96)] == [
        "999,999", "0.0001235", "1e12", "−1e−12", "100,000"
    ]  # fmt: skip
