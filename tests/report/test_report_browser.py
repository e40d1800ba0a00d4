"""The report in a real browser: it opens without errors, its controls work, names from data do nothing, it fits."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.report import RowNames, write_report

pytest.importorskip("plotly")
pd = pytest.importorskip("pandas")
sync_api = pytest.importorskip("playwright.sync_api")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",  # which a container's root needs; the page is our own
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SCREENSHOTS = Path(__file__).parents[2] / "screenshots"
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


@pytest.fixture(scope="module")
def browser():
    path = next((found for found in map(shutil.which, BROWSERS) if found), None)
    if path is None:
        pytest.skip(f"no browser found: none of {', '.join(BROWSERS)} is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


TARGETS = ["<i onclick=alert(1)>level", "z"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A date, two numbers, one of a hostile name, a category, sizes; two outputs; some regions."""
    rng = np.random.default_rng(0)
    n, learnt = 460, 360
    zones, sizes = ["east", "<b>north</b>", "west"], ["S", "M", "L"]
    zone, size = rng.integers(0, 3, n), rng.integers(0, 3, n)
    X = pd.DataFrame(
        {
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, n), "D"),
            "width": rng.uniform(-2, 2, n),
            HOSTILE: rng.uniform(-2, 2, n),
            "zone": np.array(zones)[zone],
            "size": pd.Categorical(np.array(sizes)[size], sizes, ordered=True),
        }
    )
    level = np.sin(2 * X["width"].to_numpy()) * (1 + size) + (zone == 1) + 0.1 * rng.standard_normal(n)
    level[[5, learnt + 7]] += 50.0  # an error in the rows learnt from, and one in those held out
    Y = pd.DataFrame({TARGETS[0]: level, "z": X[HOSTILE] ** 2 + 0.1 * rng.standard_normal(n)})
    model = SPNGPRegressor(max_leaf_size=40, hyperparameters="tied", random_state=0).fit(X[:learnt], Y[:learnt])
    return write_report(
        model,
        tmp_path_factory.mktemp("report") / "report.html",
        X[learnt:],
        Y[learnt:],
        title="A & B",
        row_names=RowNames("order", [f"=D{i}" for i in range(n - learnt)]),
        units={TARGETS[0]: "min", "width": "km"},
    )


class Opened:
    """The page, what it logged and what it asked for."""

    def __init__(self, browser, report, width):
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="light")
        self.problems, self.requests = [], []
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.problems.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(report.as_uri())
        self.page.wait_for_selector("html[data-ready=true]", timeout=60_000)


@pytest.fixture(scope="module")
def opened(browser, report):
    opened = Opened(browser, report, 1280)
    yield opened
    opened.page.close()


def test_it_opens_without_errors_and_without_a_network(opened, report):
    assert opened.problems == []
    fetched = [url for url in opened.requests if not url.startswith(("data:", "blob:"))]
    assert fetched == [report.as_uri()]
    # importances, six panels, calibration, six charts of errors, regions and their errors
    assert opened.page.locator(".js-plotly-plot").count() == 1 + 6 + 3 + 6 + 2


def test_what_is_still_to_be_drawn_is_drawn_before_printing(opened):
    cards = "document.querySelectorAll('#panel-cards .js-plotly-plot, #residual-cards .js-plotly-plot').length"
    again = "const output = document.getElementById('output'); output.onchange({ target: output })"
    printing = "dispatchEvent(new Event('beforeprint'))"
    before, printed = opened.page.evaluate(
        f"() => {{ {again}; const before = {cards}; {printing}; return [before, {cards}]; }}"
    )
    assert (before < 12, printed) == (True, 12)
    opened.page.wait_for_selector("html[data-ready=true]")
    assert opened.page.evaluate(cards) == 12
    heights = "[...document.querySelectorAll('.js-plotly-plot')].map((chart) => chart.offsetHeight)"
    assert min(opened.page.evaluate(heights)) > 100
    assert opened.problems == []


def test_the_verdict_stands_first_and_the_importances_next(opened):
    page = opened.page
    first = page.locator(".verdict").first.inner_text()
    assert re.search(r"are off by [\d.]+.min on average, \d+.% less than always predicting the mean", first)
    assert "one row makes" in first
    ticks = page.locator("#chart-importance .ytick text").all_text_contents()
    assert ticks[0] == "width"
    assert len(ticks) == 5  # columns, not the nine inputs
    tops = [page.locator(name).first.bounding_box()["y"] for name in (".verdict", "#importance-card", "#panel-cards")]
    assert tops == sorted(tops)
    for word in ("belief", "chance allows", "nats", "cdf"):
        assert word not in page.locator("body").inner_text()


def test_columns_have_their_types_back(opened):
    page = opened.page
    titles = page.locator("#panel-cards h3").all_inner_texts()
    assert {"size", "when", "zone", "width", "when: weekday"} < set(titles)
    chart = {title: page.locator("#panel-cards .card").nth(i) for i, title in enumerate(titles)}
    assert chart["zone"].locator(".xtick text").all_text_contents()[-1] == "<b>north</b>"
    assert chart["size"].locator(".xtick text").all_text_contents() == ["S", "M", "L"]
    assert chart["when: weekday"].locator(".xtick text").all_text_contents()[0] == "Mon"
    assert any("2024" in text for text in chart["when"].locator(".xtick text").all_text_contents())
    assert "width (km)" in chart["width"].locator(".xtitle").text_content()
    assert re.search(r"on average from .*min at .*km", chart["width"].locator("figcaption span").inner_text())


def test_names_from_data_are_text(opened):
    page = opened.page
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    shown = page.locator("#panel-cards h3").all_inner_texts()
    assert any(text.startswith("</script><script>window.hacked") for text in shown)
    assert "</script><script>" in page.locator("#data").inner_text()
    assert page.locator("#output option").all_inner_texts() == ["<i onclick=alert(1)>level", "z"]
    assert page.locator("i[onclick]").count() == 0


def test_rows_can_be_chosen_by_keyboard(opened):
    page = opened.page
    first = "document.querySelector('#panel-cards .chart')"
    count = f"{first}.data[0].x.length"
    everything, picture = page.evaluate(count), page.locator("#panel-cards .chart").first.screenshot()
    assert page.locator("#choice option").first.inner_text() == "all rows (360)"
    assert page.locator("#choice optgroup").count() == 3
    page.focus("#choice")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("html[data-drawn=true]")
    assert page.evaluate(count) < everything
    assert page.locator("#panel-cards .chart").first.screenshot() != picture
    names = page.locator("#panel-cards h3").all_inner_texts()
    chosen = page.locator("#choice optgroup[label='by zone'] option").first
    page.select_option("#choice", chosen.get_attribute("value"))
    page.wait_for_selector("html[data-drawn=true]")
    card = page.locator("#panel-cards .card").nth(names.index("zone"))
    assert card.locator("figcaption span").inner_text() == "does not change in these rows"
    page.select_option("#choice", "0")
    page.wait_for_selector("html[data-drawn=true]")
    assert opened.problems == []


def test_panels_have_an_axis_each_and_a_common_one_on_demand(opened):
    page = opened.page
    ranges = "[...document.querySelectorAll('#panel-cards .chart')].map(chart => chart.layout.yaxis.range.join(' to '))"
    assert len(set(page.evaluate(ranges))) > 1
    page.check("#common")
    page.wait_for_selector("html[data-drawn=true]")
    assert len(set(page.evaluate(ranges))) == 1
    page.uncheck("#common")
    page.wait_for_selector("html[data-drawn=true]")
    assert len(set(page.evaluate(ranges))) > 1


def test_errors_are_shown_over_time_and_by_segment(opened):
    page = opened.page
    assert page.locator("#residual-cards h3").all_inner_texts()[0] == "over time: when"
    assert 1 <= page.locator("#errors [data-output='0'] tbody tr").count() <= 8
    assert page.locator("#errors").get_by_text("inside 95 % intervals").first.is_visible()


def test_rows_to_look_at_have_the_readers_names_and_can_be_saved(opened, tmp_path):
    page = opened.page
    table = page.locator("#rows [data-output='0'] table").first
    assert table.locator("thead th").first.inner_text() == "order"
    assert table.locator("tbody th").first.inner_text() == "=D7"
    assert table.locator("tbody tr:visible").count() == 12
    page.locator("#rows [data-output='0'] .all-rows").first.click()
    assert table.locator("tbody tr:visible").count() == 100
    with page.expect_download() as started:
        page.locator("#rows [data-output='0'] .download").first.click()
    assert started.value.suggested_filename == "surprises.csv"
    started.value.save_as(tmp_path / "surprises.csv")
    frame = pd.read_csv(tmp_path / "surprises.csv", encoding="utf-8-sig")
    assert frame.shape == (100, 6 + 5)
    assert frame["order"][0] == "'=D7"  # a spreadsheet must not run it
    assert frame["observed"].dtype == frame["width (km)"].dtype == np.float64
    assert frame["observed"][0] > 45
    assert set(frame["size"]) == {"S", "M", "L"}
    doubted = page.locator("#rows [data-output='0']").nth(1)
    assert "6" in doubted.locator("tbody th").all_inner_texts()  # counted from 1
    assert opened.problems == []


def test_a_click_on_a_region_shows_it(opened):
    page = opened.page
    assert page.locator("#chart-regions g.slice").count() >= 8
    page.select_option("#region", "0")
    details = page.locator("#region-details").inner_text()
    page.locator("#chart-regions g.slice", has_text=re.compile("^4")).first.click()
    assert page.locator("#region").input_value() == "3"
    changed = page.locator("#region-details").inner_text()
    assert changed != details
    for word in (
        "Training rows",
        "Where",
        "Noise",
        "for two rows in three",
        "width: alike within",
        "part 2",
    ):
        assert word in changed
    assert re.search(r"share it|explains it best|One kernel", changed)
    assert page.locator("#chart-residuals .point").count() > 0
    assert opened.problems == []


def test_regions_can_be_chosen_by_keyboard(opened):
    page = opened.page
    page.select_option("#region", "0")
    details = page.locator("#region-details").inner_text()
    page.focus("#region")
    page.keyboard.press("ArrowDown")
    assert page.locator("#region").input_value() == "1"
    assert page.locator("#region-details").inner_text() != details


@pytest.mark.long
def test_the_other_output_has_charts_of_its_own(opened):
    page = opened.page
    page.select_option("#output", "1")
    page.wait_for_selector("html[data-ready=true]")
    assert page.locator("#panel-cards h3").first.inner_text().startswith("</script>")
    assert page.locator("[data-output='0']").first.is_hidden()
    assert page.locator("[data-output='1']").first.is_visible()
    page.select_option("#output", "0")
    page.wait_for_selector("html[data-ready=true]")
    assert page.locator("#panel-cards h3").first.inner_text() == "width"
    assert opened.problems == []


def test_tab_reaches_every_control(opened):
    page = opened.page
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    reached = set()
    for _ in range(90):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"skip", "output", "choice", "common", "region", "download"} <= reached
    assert {"scroll", "scroll more"} & reached


def _check_fit(page, width, scheme):
    assert page.evaluate("document.documentElement.scrollWidth") == width  # nothing sticks out
    wide = (
        "[...document.querySelectorAll('.js-plotly-plot')].filter(e => e._fullLayout.width > e.clientWidth + 1).length"
    )
    assert page.evaluate(wide) == 0
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 24, 28)" if scheme == "dark" else "rgb(255, 255, 255)")
    tick = "getComputedStyle(document.querySelector('#panel-cards .xtick text')).fill"
    assert page.evaluate(tick) == page.evaluate("getComputedStyle(document.body).color")
    SCREENSHOTS.mkdir(exist_ok=True)
    picture = page.screenshot(path=SCREENSHOTS / f"report-{width}-{scheme}.png", full_page=True)
    assert len(picture) > 50_000


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_it_fits_a_wide_window_in_either_scheme(opened, scheme):
    opened.page.emulate_media(color_scheme=scheme)
    _check_fit(opened.page, 1280, scheme)
    assert opened.problems == []


def test_it_fits_a_telephone_and_says_where_a_table_goes_on(browser, report):
    opened = Opened(browser, report, 400)
    page = opened.page
    _check_fit(page, 400, "light")
    box, cue = (page.locator(f"#rows [data-output='0'] .{part}").first for part in ("scroll", "cue"))
    box.scroll_into_view_if_needed()
    assert cue.is_visible()
    box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    cue.wait_for(state="hidden")
    assert opened.problems == []
    page.close()


def test_it_prints(opened):
    SCREENSHOTS.mkdir(exist_ok=True)
    printed = opened.page.pdf(path=SCREENSHOTS / "report.pdf", format="A4", print_background=True)
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 10


def test_an_old_browser_still_has_the_tables(browser, report):
    page = browser.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready=failed]")
    assert "need a browser of 2023 or later" in page.locator("#notice").inner_text()
    assert page.locator("#rows td").count() > 0
    page.close()


@pytest.mark.long
def test_a_single_input_has_a_curve_instead_of_panels(browser, tmp_path):
    x = np.linspace(0, 6, 40)[:, np.newaxis]
    model = SPNGPRegressor(max_leaf_size=20, hyperparameters="fixed").fit(x, np.sin(x[:, 0]))
    opened = Opened(browser, write_report(model, tmp_path / "report.html", x + 0.1, np.sin(x[:, 0] + 2.5)), 1280)
    page = opened.page
    assert page.locator("#chart-curve .heatmaplayer image").count() == 1
    assert page.locator("#panel-cards .card").count() == 0
    assert page.locator("#importance-card").is_hidden()
    assert "SE + SE" in page.locator("#kernel-legend").inner_text()
    alarm = page.locator(".verdict.alarm").inner_text()
    assert alarm.startswith("Take care. Predictions of y are off by")
    assert "Do not use it as it is." in alarm
    assert opened.problems == []
    page.close()


@pytest.mark.long
def test_a_single_region_needs_no_map_and_settings_are_told_together(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    model = SPNGPRegressor(random_state=0).fit(X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(60))
    opened = Opened(browser, write_report(model, tmp_path / "report.html"), 1280)
    page = opened.page
    assert page.locator("#chart-regions").is_hidden()
    assert page.locator("#region-choice").is_hidden()
    assert re.match(rf"{len(model.regions_)} settings of ", page.locator("#region-details .words").inner_text())
    kernels = len({record["kernel"] for record in model.regions_})
    assert page.locator("#region-details details").count() == kernels < len(model.regions_)
    assert opened.problems == []
    page.close()


@pytest.mark.long
def test_one_row_is_not_called_rows(browser, tmp_path):
    X = np.arange(4.0)[:, np.newaxis]
    model = SPNGPRegressor(max_leaf_size=1, overlap=1, hyperparameters="fixed").fit(X, [0.0, 1.0, 0.0, 2.0])
    opened = Opened(browser, write_report(model, tmp_path / "report.html"), 1280)
    options = opened.page.locator("#region option").all_inner_texts()
    shown = opened.page.locator("body").inner_text()
    opened.page.close()
    assert options
    assert all(option.split(": ")[1].startswith("1 row,") for option in options)
    assert "It also looks at 1 row beyond the border." in shown
    assert not re.search(r"\b1 (rows|regions|inputs|columns|settings|observations)\b", shown)
