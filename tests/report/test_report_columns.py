"""Columns as the reader knows them, averages over rows that occur, segments, and the verdict."""

import numpy as np
import pytest

from spngp.columns import Column as Described
from spngp.columns import InputColumns
from spngp.columns.dates import encode
from spngp.columns.frames import Values
from spngp.metrics import scores
from spngp.predictive import GaussianMixture
from spngp.report.accuracy import Accuracy
from spngp.report.columns import Column, box_text, columns_of
from spngp.report.importance import importances
from spngp.report.judged import Judged
from spngp.report.kernel_words import meaning
from spngp.report.panels import panels, sampled_rows
from spngp.report.residuals import residual_charts, segments
from spngp.report.verdict import dominating, interval_verdict, verdict
from spngp.report.windows import windows


class Known:
    """A model that only knows its columns, and whose predictions are a function of the rows."""

    def __init__(self, columns, function=None):
        self.columns_ = InputColumns(tuple(columns))
        self._function = function

    def predict(self, X):
        return self._function(X)


ZONE = Described("zone", "category", ("east", "north", "west"), unseen=1)
EAST, NORTH, WEST, MOON = (
    ZONE.encode(Values("text", np.empty(0), [level]))[0, 0] for level in ("east", "north", "west", "moon")
)
TABLE = (
    Described("when", "date", parts=("days", "weekday", "month")),
    ZONE,
    Described("size", "ordinal", ("S", "M", "L")),
    Described("km"),
)


def rows(n=40, seed=0):
    """Days with weekday and month, codes of zones, size, km."""
    rng = np.random.default_rng(seed)
    days = 19_723.0 + rng.integers(0, 300, n)  # from 2024-01-01, a Monday
    zone = rng.choice([EAST, NORTH, WEST], n)
    return np.column_stack([encode(days, TABLE[0].parts), zone, rng.integers(0, 3, n), rng.uniform(0, 9, n)])


def test_types_are_restored():
    X = rows()
    when, weekday, month, zone, size, km = columns_of(Known(TABLE), X, {"km": "km"})
    assert [c.kind for c in (when, weekday, month, zone, size, km)] == [
        *("date", "ordered", "ordered", "category", "ordered", "number")
    ]
    assert when.inputs == (0, 1, 2)
    assert [column.part for column in (when, weekday, month, zone)] == [False, True, True, False]
    assert when.text(19_723.2) == "2024-01-01"  # dates without a time of day
    assert weekday.text(weekday.values(X)[0]) == str(weekday.levels[int((X[0, 0] - 4) % 7)])
    assert month.text(float(month.values(np.array([[0, 0, 12.0]]))[0])) == "Dec"
    codes = np.array([[0, 0, 0, code] for code in (EAST, NORTH, WEST, MOON)])
    assert [zone.text(value) for value in zone.values(codes)] == ["east", "north", "west", "(not seen)"]
    assert size.text(2.0) == "L"
    assert km.quantity(2.5) == "2.5\u00a0km"
    assert when.axis(np.array([19_723.5])) == ["2024-01-01 12:00:00"]


def test_a_date_without_days_has_its_parts_only():
    (month,) = columns_of(Known([Described("when", "date", parts=("month",))]), np.array([[1.0], [3.0]]))
    assert (month.name, month.part, month.levels[0]) == ("when: month", False, "Jan")


def test_columns_of_an_estimator_have_levels_gaps_and_circles():
    """As a model describes them that was fitted on a table."""
    days = np.array([19_723.0, 19_724.0, 19_723.0 + 181, 19_723.0 + 365])  # a Monday, a Tuesday, end of June, a year on
    described = (
        Described("when", "date", parts=("days", "week", "season")),
        ZONE,
        Described("kg", gaps=True, fill=(2.0,)),
        Described("rain", "boolean"),
    )
    X = np.column_stack(
        [encode(days, described[0].parts), [EAST, MOON, WEST, EAST], [1, 2, 2, 4], [0, 1, 0, 0], [0, 1, 1, 0]]
    )
    when, weekday, month, zone, kg, no_kg, rain = columns_of(Known(described), X)
    assert [weekday.text(value) for value in weekday.values(X)] == ["Mon", "Tue", "Sun", "Tue"]
    assert [month.text(value) for value in month.values(X)][2] == "Jun"
    assert [zone.text(value) for value in zone.values(X)] == ["east", "(not seen)", "west", "east"]
    assert [kg.text(value) for value in kg.values(X)] == ["1", "–", "2", "4"]
    assert (kg.inputs, no_kg.part, kg.raw(np.nan)) == ((6, 7), True, "")
    assert [rain.text(value) for value in rain.values(X)] == ["no", "yes", "yes", "no"]
    low, high = np.full(9, -np.inf), np.full(9, np.inf)
    high[5] = EAST + 0.5
    assert box_text(low, high, [when, zone, kg]) == ["zone: east"]
    found = windows(kg, kg.values(X))
    assert found.at.tolist() == [1.0, 2.0, 4.0]  # what fills the gap is no value
    assert found.weights[:, 1].tolist() == [0.0, 0.0, 0.0]


def test_boxes_are_told_by_levels_and_dates():
    columns = columns_of(Known(TABLE), rows(), {"km": "km"})
    low = [19_800.0, -np.inf, -np.inf, EAST + 0.5, 0.5, -np.inf]
    high = [np.inf] * 5 + [3.0]
    assert box_text(low, high, columns) == ["when > 2024-03-18", "zone: north, west", "size: M, L", "km ≤ 3\u00a0km"]


def test_a_columns_inputs_are_shuffled_together():
    X = rows(200)
    model = Known(TABLE, lambda X: 2.0 * (X[:, 3] == NORTH) + 0.5 * X[:, 5])
    columns = columns_of(model, X)
    (found,) = importances(model, X, columns)
    shares = dict(zip([column.name for column in columns], [item.share for item in found], strict=True))
    assert shares["when"] == shares["size"] == 0.0
    total = np.var(model.predict(X))
    assert shares["zone"] == pytest.approx(4.0 * np.var(X[:, 3] == NORTH) / total, rel=0.2)
    assert shares["km"] == pytest.approx(0.25 * np.var(X[:, 5]) / total, rel=0.2)
    assert all(item.error < 0.2 for item in found)


def test_windows_are_averages_of_rows_that_occur():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 1, 100), rng.uniform(9, 10, 100)])
    found = windows(Column("x", "number", (0,)), x)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)
    assert (found.weights >= 0).all()
    np.testing.assert_allclose(found.weights @ x, found.at)
    assert (np.diff(found.at) > 0).all()
    (gap,) = found.breaks  # nothing occurs between 1 and 9, and no average mixes what is on either side
    assert found.at[gap - 1] < 1 < 9 < found.at[gap]
    few = windows(Column("x", "number", (0,)), np.array([3.0, 1.0, 3.0]))
    assert few.distinct
    assert few.at.tolist() == [1.0, 3.0]
    assert few.weights.tolist() == [[0, 1, 0], [0.5, 0, 0.5]]


def test_panels_are_predictions_of_rows_that_occur():
    """Two inputs that go together: the slope along one is that of both, and no other place is ever predicted."""
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 1, 300)
    X = np.column_stack([a, a + 0.01 * rng.standard_normal(300), rng.integers(0, 2, 300)])
    mean = 2.0 * X[:, 0] + 3.0 * X[:, 1]
    mixture = GaussianMixture(np.zeros((300, 1)), mean[:, np.newaxis], np.full((300, 1), 0.04))
    (rows,) = sampled_rows(X, mean[:, np.newaxis], [mixture])
    columns = [Column("a", "number", (0,)), Column("b", "number", (1,)), Column("c", "ordered", (2,), ("no", "yes"))]
    found = panels(rows, columns, [0, 1, 2], "m")
    assert [item["name"] for item in found["items"]] == ["a", "b", "c"]
    step = found["items"][0]["steps"][0]
    at, along, low, high = (_floats(step[key]) for key in ("x", "mean", "low", "high"))
    np.testing.assert_allclose(along, 5.0 * at, atol=0.05)
    middle = slice(8, -8)
    # half of the interval of one row, and what varies within a window
    assert np.all((high - low)[middle] / 2 > 1.96 * 0.2)
    assert np.all((high - low)[middle] / 2 < 1.96 * 0.2 + 0.5)
    assert [choice["by"] for choice in found["choices"]] == ["", "a", "a", "a", "b", "b", "b", "c", "c"]
    of_no = next(i for i, choice in enumerate(found["choices"]) if choice["label"] == "c: no")
    assert found["choices"][of_no]["rows"] == int((X[:, 2] == 0).sum())
    assert found["items"][2]["steps"][of_no] is None  # c does not change where it is no


def _floats(spec):
    import base64

    return np.frombuffer(base64.b64decode(spec["bdata"]), dtype=spec["dtype"]).astype(float)


def judged(X, y, mean, std=1.0):
    n = len(y)
    mixture = GaussianMixture(np.zeros((n, 1)), mean[:, np.newaxis], np.full((n, 1), std**2))
    names = [str(i + 1) for i in range(n)]
    return Judged(X, y[:, np.newaxis], [mixture], names, np.arange(n), "row", True, n)


def test_the_worst_segment_is_found_with_its_lean():
    rng = np.random.default_rng(0)
    X = rows(600)
    columns = columns_of(Known(TABLE), X)
    mean = np.zeros(600)
    y = rng.standard_normal(600)
    y[X[:, 3] == NORTH] += 3.0
    worst = segments(judged(X, y, mean), 0, columns)
    assert worst[0].name == "zone: north"
    assert worst[0].rows == int((X[:, 3] == NORTH).sum())
    assert worst[0].bias == pytest.approx(3.0, abs=0.3)
    assert worst[0].ratio > 1.5
    assert worst[0].worse > 3
    assert worst[0].coverage < 0.5
    assert worst[1].worse < 3


def test_errors_are_shown_over_time_or_in_the_order_of_rows():
    X = rows(60)
    columns = columns_of(Known(TABLE), X)
    found = residual_charts(judged(X, np.ones(60), np.zeros(60)), 0, columns, [5, 4, 0, 3])
    assert [item["name"] for item in found["items"]] == ["when", "km", "size", "zone"]
    assert found["items"][0]["kind"] == "date"
    np.testing.assert_allclose(_floats(found["items"][1]["mean"]), 1.0)
    found = residual_charts(judged(X, np.ones(60), np.zeros(60)), 0, columns[5:], [0])
    assert [item["name"] for item in found["items"]] == ["order of the rows", "km"]


def accuracy_of(y, mean, std):
    mixture = GaussianMixture(np.zeros((y.size, 1)), mean[:, np.newaxis], np.full((y.size, 1), std**2))
    return Accuracy(scores(mixture, y, (0.5, 0.8, 0.95)), 1.0)


def test_the_verdict_names_baseline_and_intervals():
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 3, 500)
    y = truth + rng.standard_normal(500)
    reference = float(np.abs(y - y.mean()).mean())
    good = verdict(accuracy_of(y, truth, 1.0), reference, y - truth, "delay", "min")
    said = " ".join(good.sentences).replace("\u00a0", " ")
    size = np.abs(y - truth).mean()
    assert (
        f"Predictions of delay are off by {size:.3f} min on average, {100 * (1 - size / reference):.0f} % less" in said
    )
    assert f"than always predicting the mean ({reference:.2f} min)" in said
    assert "Its intervals are honest: " in said
    assert not good.alarm
    narrow = verdict(accuracy_of(y, truth, 0.5), reference, y - truth, "delay", "min")
    assert narrow.alarm
    assert "Its intervals are too narrow: only" in narrow.sentences[-1]
    wide = verdict(accuracy_of(y, truth, 3.0), reference, y - truth, "delay", "min")
    assert (wide.alarm, wide.wide) == (False, True)
    worse = verdict(accuracy_of(y, -truth, 6.0), reference, y + truth, "delay", "min")
    assert worse.alarm
    assert "more than always predicting the mean" in worse.sentences[0]
    assert "Do not use it as it is." in worse.sentences
    same = verdict(accuracy_of(y, np.full(500, y.mean()), 3.2), reference, y - y.mean(), "delay", "")
    assert not same.alarm
    assert "the inputs say little about it" in same.sentences[0]


@pytest.mark.parametrize(
    ("n", "share", "start", "fails"),
    [
        (100, 0.91, "Its intervals are honest: 91 % of 100 observations", ""),
        (100, 0.80, "Its intervals are too narrow: only 80 % of 100 observations", "narrow"),
        (10_000, 0.94, "Its intervals are honest", ""),  # by chance too few, but near enough
        (10_000, 0.999, "Its intervals are too wide: 99.9 % of 10,000", "wide"),
        (3, 0.0, "3 observations cannot show whether its intervals hold", ""),
    ],
)
def test_intervals_are_judged_with_chance_allowed_for(n, share, start, fails):
    said, failed = interval_verdict(n, {0.95: share})
    assert said.replace("\u00a0", " ").startswith(start)
    assert failed == fails


def test_a_few_rows_that_make_the_squared_error_are_named():
    error = np.ones(500)
    assert dominating(error) == (0, 0.0)
    error[[3, 7]] = 100.0
    count, share = dominating(error)
    assert count == 2
    assert share == pytest.approx(20_000 / 20_498)


def test_kernels_are_explained():
    assert meaning("Linear") == "straight lines"
    assert (
        meaning("Matern(1.5) + Matern(1.5)", 4) == "curves with kinks, a slow and a fast one, 2 more for fine structure"
    )
    assert meaning("crash") == ""
