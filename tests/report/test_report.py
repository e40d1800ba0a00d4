"""The report file: what it says is what the model says, and nothing in it comes from elsewhere or does harm."""

import base64
import json
import re

import numpy as np
import pytest

from spngp import GPRegressor, SPNGPRegressor, datasets, metrics
from spngp._support.outputs import one_output
from spngp.committees import RobustBayesianCommitteeMachine
from spngp.kernels import SquaredExponential
from spngp.plotting.expert_regions import expert_regions
from spngp.report import RowNames, write_report
from spngp.report.text import Cell, figure, json_for_html, name, number, packed, table

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
        np.testing.assert_allclose(
            np.sort(_unpacked(charts["residuals"]["error"])), np.sort((Y.to_numpy() - mixture.mean)[observed, k])
        )
        regions = expert_regions(model, k)
        assert [item["rows"] for item in charts["regions"]["items"]] == [
            region.rows for region in regions if region.rows * region.weight > 1e-3
        ]
        assert sum(region.rows * region.weight for region in regions) == pytest.approx(
            (~np.isnan(model.y_train_.reshape(len(model.X_train_), -1)[:, k])).sum()
        )
        part = model.predict_dist(X[observed])
        assert f">{number(metrics.nlpd(one_output(part, k), Y.to_numpy()[observed, k]))}<" in page
    assert data["charts"][0]["importance"]["names"][0] == name(HOSTILE[0])
    assert data["charts"][1]["importance"]["names"][0] == name(HOSTILE[1])


def test_the_least_chance_is_the_first_surprise(hostile, page):
    model, X, Y = hostile
    page = page.read_text(encoding="utf-8")
    below = model.predict_dist(X).cdf(Y.to_numpy())[:, 0]
    first = re.search(r"Largest surprises</caption>.*?<tbody><tr><th[^>]*>(.*?)</th>", page, re.DOTALL)[1]
    assert first == f"sample {np.argmin(np.minimum(below, 1.0 - below))}"
    assert "Rows are called by the names given." in page
    assert 'title="outside the training range' in page  # the row at 9


def test_rows_without_names_are_counted_from_one(tmp_path):
    x = np.linspace(0, 6, 30)
    y = np.sin(x)
    y[[4, 20]] += [0.0, 3.0]
    model = GPRegressor(noise_variance=0.01, hyperparameters="fixed").fit(x[:, np.newaxis], np.sin(x))
    page = write_report(model, tmp_path / "report.html", x[:, np.newaxis], y).read_text(encoding="utf-8")
    assert re.search(r"Largest surprises</caption>.*?<tbody><tr><th[^>]*>(.*?)</th>", page, re.DOTALL)[1] == "21"
    assert "Rows are counted from 1." in page
    called = RowNames("order", [f"D-{i}" for i in range(30)])
    page = write_report(model, tmp_path / "r.html", x[:, np.newaxis], y, row_names=called).read_text("utf-8")
    assert "Rows are called by order." in page
    assert re.search(r'Largest surprises</caption>.*?title="order".*?<tbody><tr><th[^>]*>(.*?)</th>', page)[1] == "D-20"


def test_outputs_in_doubt_are_listed(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (200, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(200)
    y[[30, 150]] += [40.0, -60.0]
    model = SPNGPRegressor(random_state=0).fit(X, y)
    assert set(model.outliers_[:, 0]) == {30, 150}
    page = write_report(model, tmp_path / "report.html").read_text(encoding="utf-8")
    listed = page[page.index("Rows of the fit in doubt</caption>") :]
    assert re.findall(r'<tr><th scope="row"[^>]*>(\d+)<', listed[: listed.index("</table>")]) == ["151", "31"]


def test_units_and_title_are_the_readers(tmp_path):
    data = datasets.load("motorcycle")
    X, y = pd.DataFrame(data.X, columns=["time"]), pd.Series(data.Y[:, 0], name="accel")
    model = GPRegressor(hyperparameters="fixed").fit(X, y)
    page = write_report(
        model, tmp_path / "r.html", X, y, title="A crash", units={"accel": "g", "time": "ms"}
    ).read_text("utf-8")
    assert "<title>A crash</title>" in page
    assert "time (ms)" in page
    assert re.search(r"are off by [\d.]+\u00a0g on average", page)
    assert re.search(r"<dt>Off by</dt><dd>[\d.]+\u00a0g<", page)
    with pytest.raises(ValueError, match=r"units must be of columns or outputs, time, accel; got 'speed'"):
        write_report(model, tmp_path / "r.html", X, y, units={"speed": "m/s"})


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
    assert "cannot say how good predictions of new rows are" in page
    assert "Off by</dt>" not in page
    found = _data(page)["charts"][0]
    assert found["calibration"] is None
    assert found["panels"] is None
    np.testing.assert_allclose(np.sort(_unpacked(found["curve"]["y"])), np.sort(data.Y[:, 0]), atol=1e-9)
    mean = _unpacked(found["curve"]["mean"])
    np.testing.assert_allclose(mean, model.predict(_unpacked(found["curve"]["x"])[:, np.newaxis]), rtol=1e-5, atol=1e-5)


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
    assert found["charts"][0]["panels"]["items"] == []
    assert found["charts"][0]["calibration"]["rows"] == n


def test_a_committee_is_reported_by_the_rows_given(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (120, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(120)
    model = RobustBayesianCommitteeMachine(n_experts=3, hyperparameters="fixed", random_state=0).fit(X[:90], y[:90])
    page = write_report(model, tmp_path / "report.html", X[90:], y[90:]).read_text(encoding="utf-8")
    assert "learnt from 90 rows" in page
    found = _data(page)["charts"][0]
    assert found["regions"] is None
    assert found["importance"]["names"][0] == "x0"
    with pytest.raises(ValueError, match="a RobustBayesianCommitteeMachine keeps no rows to show: give X and y"):
        write_report(model, tmp_path / "other.html")


def test_settings_that_share_a_region_are_told_together(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    model = SPNGPRegressor(random_state=0).fit(X, y)
    assert len(model.regions_) > 4
    found = _data(write_report(model, tmp_path / "report.html").read_text(encoding="utf-8"))
    (region,) = found["charts"][0]["regions"]["items"]
    assert re.match(rf"{len(model.regions_)} settings of (\d+ kernels|[^;]*) share it", region["words"])
    assert re.search(r"length-scale of x0 [\d.]+ to [\d.]+; ", region["words"])
    assert len(region["kernels"]) == len({record["kernel"] for record in model.regions_}) < len(model.regions_)


def test_a_logarithm_and_levels_are_told_in_their_own_terms(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"age": rng.uniform(0, 9, 80), "make": rng.choice(["A", "B", "C"], 80), "new": rng.random(80) < 0.5}
    )
    y = np.exp(9 - 0.2 * X["age"] + 0.3 * (X["make"] == "A") + 0.1 * rng.standard_normal(80)).rename("price")
    model = GPRegressor(target="log", random_state=0).fit(X[:60], y[:60])
    page = write_report(model, tmp_path / "report.html", X[60:], y[60:], units="€").read_text(encoding="utf-8")
    (region,) = _data(page)["charts"][0]["regions"]["items"]
    assert re.fullmatch(r"±(9|1\d)(\.\d)?\u00a0% for two rows in three", region["noiseText"])
    assert "length-scale of make" not in region["words"]
    assert "on the log scale" in region["words"]
    table = dict(row[:2] for row in region["kernels"][0]["parameters"]["rows"])
    assert table["size"].endswith("on the log scale")
    assert re.fullmatch(r"levels [\d.]+\u00a0% alike", table["make: alike within"])
    assert ">yes or no<" in page


def test_the_same_model_gives_the_same_page(hostile, tmp_path):
    model, X, Y = hostile
    one, other = (write_report(model, tmp_path / f"{i}.html", X, Y).read_bytes() for i in range(2))
    assert one == other


def test_rows_that_the_model_was_learnt_from_do_not_pass_for_new_ones(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(60)
    model = GPRegressor(SquaredExponential(), hyperparameters="fixed", noise_variance=0.01).fit(X[:40], y[:40])
    said = {
        10: "Judged by 20 rows, all of which it was learnt from: on new rows it will be worse.",
        30: "Judged by 20 rows, of which 10 are equal to rows that it was learnt from: if they are the same ones",
        40: "Judged by 20 rows that it has not seen.",
    }
    for start, words in said.items():
        rows = slice(start, start + 20)
        page = write_report(model, tmp_path / "report.html", X[rows], y[rows]).read_text(encoding="utf-8")
        assert words in page


def test_more_rows_than_are_looked_at_are_sampled(hostile, tmp_path, monkeypatch):
    model, X, Y = hostile
    monkeypatch.setattr("spngp.report.judged._HELD_OUT_ROWS", 25)
    page = write_report(model, tmp_path / "report.html", X, Y).read_text(encoding="utf-8")
    assert "Judged by 25 rows that it has not seen. They are a random sample of 40." in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": "X"}, "X and y must be given together, got no y"),
        ({"X": "X", "y": "one"}, "y must have the model's 2 outputs, got 1"),
        ({"X": "swapped", "y": "Y"}, "X must have the columns"),
        ({"X": "X", "y": "missing"}, "at least one value that is not missing"),
        ({"output_names": ["a"]}, r"output_names must have one name per output \(2\), got 1"),
        ({"X": "X", "y": "Y", "row_names": ["a"]}, r"row_names must have one name per row \(40\), got 1"),
        ({"units": "Y unit"}, r"units of several outputs must be given by name \(y0, y1\), got one unit"),
    ],
)
def test_bad_arguments_leave_the_old_file_alone(hostile, tmp_path, arguments, message):
    model, X, Y = hostile
    values = {"X": X, "Y": Y, "one": Y.iloc[:, 0], "swapped": X[HOSTILE[::-1]], "missing": Y * np.nan}
    given = {key: values.get(value, value) if isinstance(value, str) else value for key, value in arguments.items()}
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
    with pytest.raises(TypeError, match="must be a fitted estimator of spngp, got LinearRegression"):
        write_report(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "report.html")


def test_text_is_safe_and_short():
    assert name("a\x00b\nc" + "d" * 100) == "a b c" + "d" * 54 + "…"
    assert name("  ") == "(no name)"
    assert json.loads(json_for_html({"a": "</script>\u2028"})) == {"a": "</script>\u2028"}
    assert [packed(np.array([size]))["dtype"] for size in (0.0, 1.0, 1e40, 1e-40)] == ["f4", "f4", "f8", "f8"]
    assert "\u2028" not in json_for_html("\u2028")
    with pytest.raises(ValueError, match="Out of range"):
        json_for_html(float("nan"))
    hostile = table(["<b>"], [["<b>", Cell("<b>", "<b>", '"<b>')]], "<b>", download="<b>")
    assert "&lt;b&gt;" in hostile
    assert "<b>" not in hostile
    assert figure(1234567.8912, "m") == Cell("1,234,568\u00a0m", "", "1234567.891")
    assert [number(value) for value in (999999.0, 0.00012346, 1e12, -1e-12, 99999.96)] == [
        "999,999", "0.0001235", "1e12", "−1e−12", "100,000"
    ]  # fmt: skip
