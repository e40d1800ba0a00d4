"""The report in a real browser: it opens without errors, its controls work, names from data do nothing, it fits."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.report import write_report

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


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Three inputs, one of them hostile; two outputs; a dozen regions."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 2, (460, 3)), columns=["width", HOSTILE, "depth"])
    y = np.sin(2 * X["width"]) * (1 + X["depth"]) + 0.1 * rng.standard_normal(460) * (1.5 + X["depth"])
    Y = pd.DataFrame({"<i onclick=alert(1)>level": y, "z": X.iloc[:, 1] ** 2 + 0.1 * rng.standard_normal(460)})
    model = SPNGPRegressor(max_leaf_size=40, hyperparameters="fixed", random_state=0).fit(X[:360], Y[:360])
    return write_report(model, tmp_path_factory.mktemp("report") / "report.html", X[360:], Y[360:], title="A & B")


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
    assert opened.page.locator(".js-plotly-plot").count() == 3 + 3 + 2  # calibration, slices, regions and residuals
    assert opened.page.locator("#slice-cards h3").all_inner_texts()[0] == "width"


def test_names_from_data_are_text(opened):
    page = opened.page
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    shown = page.locator("#slice-cards h3").all_inner_texts()
    assert any(text.startswith("</script><script>window.hacked") for text in shown)
    assert "</script><script>" in page.locator("#data").inner_text()
    assert page.locator("#output option").all_inner_texts() == ["<i onclick=alert(1)>level", "z"]
    assert page.locator("i[onclick]").count() == 0


def test_the_slider_moves_the_slices_by_keyboard(opened):
    page = opened.page
    mean = "document.querySelector('#slice-cards .chart').data[3].y.bdata"
    before, text = page.evaluate(mean), page.locator("#slider-value").inner_text()
    assert text == "50 % quantile (median)"
    picture = page.locator("#slice-cards .chart").first.screenshot()
    page.focus("#slider")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("#slider-value").inner_text() == "95 % quantile"
    assert page.get_attribute("#slider", "aria-valuetext") == "95 % quantile"
    page.wait_for_function(f"{mean} !== '{before}'")
    assert page.locator("#slice-cards .chart").first.screenshot() != picture
    page.keyboard.press("Home")  # while the last move may still be drawn
    assert page.locator("#slider-value").inner_text() == "5 % quantile"
    assert opened.problems == []


def test_a_click_on_a_region_shows_it(opened):
    page = opened.page
    assert page.locator("#chart-regions g.slice").count() >= 8
    details = page.locator("#region-details").inner_text()
    page.locator("#chart-regions").scroll_into_view_if_needed()
    tile = page.locator("#chart-regions g.slice", has_text=re.compile("^4")).first.bounding_box()
    page.mouse.click(tile["x"] + tile["width"] / 2, tile["y"] + tile["height"] / 2)
    assert page.locator("#region").input_value() == "3"
    changed = page.locator("#region-details").inner_text()
    assert changed != details
    for word in ("Training rows", "Box", "Noise", "Log evidence", "Experts", "length scale of width", "part 2"):
        assert word in changed
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


def test_the_other_output_has_charts_of_its_own(opened):
    page = opened.page
    page.select_option("#output", "1")
    page.wait_for_selector("html[data-ready=true]")
    assert page.locator("#slice-cards h3").first.inner_text().startswith("</script>")
    assert page.locator("[data-output='0']").is_hidden()
    assert page.locator("[data-output='1']").is_visible()
    page.select_option("#output", "0")
    page.wait_for_selector("html[data-ready=true]")
    assert page.locator("#slice-cards h3").first.inner_text() == "width"
    assert opened.problems == []


def test_tab_reaches_every_control(opened):
    page = opened.page
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"skip", "output", "slider", "region", "scroll"} <= reached


def _check_fit(page, width, scheme):
    assert page.evaluate("document.documentElement.scrollWidth") == width  # nothing sticks out
    wide = (
        "[...document.querySelectorAll('.js-plotly-plot')].filter(e => e._fullLayout.width > e.clientWidth + 1).length"
    )
    assert page.evaluate(wide) == 0
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 24, 28)" if scheme == "dark" else "rgb(255, 255, 255)")
    tick = "getComputedStyle(document.querySelector('#slice-cards .xtick text')).fill"
    assert page.evaluate(tick) == page.evaluate("getComputedStyle(document.body).color")
    SCREENSHOTS.mkdir(exist_ok=True)
    picture = page.screenshot(path=SCREENSHOTS / f"report-{width}-{scheme}.png", full_page=True)
    assert len(picture) > 50_000


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_it_fits_a_wide_window_in_either_scheme(opened, scheme):
    opened.page.emulate_media(color_scheme=scheme)
    _check_fit(opened.page, 1280, scheme)
    assert opened.problems == []


def test_it_fits_a_telephone(browser, report):
    opened = Opened(browser, report, 400)
    _check_fit(opened.page, 400, "light")
    assert opened.problems == []
    opened.page.close()


def test_it_prints(opened):
    SCREENSHOTS.mkdir(exist_ok=True)
    printed = opened.page.pdf(path=SCREENSHOTS / "report.pdf", format="A4", print_background=True)
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 8


def test_an_old_browser_still_has_the_tables(browser, report):
    page = browser.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready=failed]")
    assert "need a browser of 2023 or later" in page.locator("#notice").inner_text()
    assert page.locator("#surprises td").count() > 0
    page.close()


def test_one_row_is_not_called_rows(browser, tmp_path):
    X = np.arange(4.0)[:, np.newaxis]
    model = SPNGPRegressor(max_leaf_size=1, overlap=1, hyperparameters="fixed").fit(X, [0.0, 1.0, 0.0, 2.0])
    opened = Opened(browser, write_report(model, tmp_path / "report.html"), 1280)
    options = opened.page.locator("#region option").all_inner_texts()
    shown = opened.page.locator("body").inner_text()
    opened.page.close()
    assert options
    assert all(option.split(": ")[1].startswith("1 row,") for option in options)
    assert "sees 1 row beyond the border" in shown
    assert not re.search(r"\b1 (rows|regions|inputs)\b", shown)
