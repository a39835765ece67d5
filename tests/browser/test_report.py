"""Reports in a real browser. All names in them try to run a script."""

import base64
import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from selenium.common import WebDriverException
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from sklearn.linear_model import LinearRegression
from skops.io import dump

from holdtrue import SelectionPath
from holdtrue.demo import write_data

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
AXE = Path(__file__).parents[2] / ".venv/node_modules/axe-core/axe.min.js"
SCRIPT, IMAGE = "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'
PAGES = ("rank", "select", "compare", "check", "transfer", "size", "path", "demo")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # which is small in containers
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "about:blank",
)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHROMIUM.exists() and DRIVER.exists()),
        reason="no chromium with its driver: run make browser",
    ),
]
every_page = pytest.mark.parametrize("page", PAGES)


def patiently(ask):
    """What Chromium gives in three attempts: on a busy machine it is not ready at once."""
    for patience in (2, 10):
        try:
            return ask()
        except WebDriverException:
            time.sleep(patience)
    return ask()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = patiently(lambda: Chrome(options, ChromeService(str(DRIVER))))
    driver.set_script_timeout(600)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory, command_line):
    """A report of each command, and of a path with scores that are missing or infinite."""
    folder = tmp_path_factory.mktemp("reports")
    holdtrue = command_line(folder)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 4))
    table = pa.table(
        {
            SCRIPT: X[:, 0],
            IMAGE: X[:, 1],
            "plain": X[:, 2],
            "level": np.where(X[:, 3] > 0, SCRIPT, IMAGE),
            "<b>target": X[:, 0] + 0.1 * X[:, 1],
            "<i>place": np.array([SCRIPT, IMAGE, "<b>c", "d&amp;"])[np.arange(160) % 4],
        }
    )
    file = "<img src=x onerror=alert(1)>.parquet"
    pq.write_table(table, folder / file)
    shelf = folder / "<b>shelf"
    shelf.mkdir()
    dump(LinearRegression().fit(X[:, :3], X[:, 0]), shelf / "<img src=x onerror=alert(1)>.skops")
    dump(LinearRegression().fit(X[:, :3], X[:, 3]), shelf / "other.skops")
    few, saved = ("--drop", "level", "--drop", "<i>place"), ("--save", "<b>ridge.skops")
    for command, asked in {
        "rank": ("-t", "level"),
        "select": ("-t", "<b>target", "-d", "<i>place"),
        "compare": ("-t", "<b>target", "-d", "<i>place", "--models", "mean,ridge", *saved),
        "transfer": ("-t", "<b>target", "-s", shelf.name, *few),
        "size": ("--x", SCRIPT, "--y", "<b>target"),
    }.items():
        ended = holdtrue(command, file, *asked, "--out", f"{command}.html", "--quiet")
        assert ended.code == 0, ended
    assert holdtrue("check", "<b>ridge.skops", file, "--out", "check.html", "--quiet").code == 0
    scores = [10.0, 9.0, np.nan, np.inf, -1.0, 2.0, 100.0]
    names = [SCRIPT, IMAGE, "zebra", "Apple", "10", "9"]
    path = SelectionPath(range(6), names, scores, 4, f"because {SCRIPT}")
    (folder / "path.json").write_text(path.to_json())
    assert holdtrue("report", "path.json", "--quiet").code == 0
    assert holdtrue("demo", "--out", "demo.html", "--quiet").code == 0
    wide = pa.table(
        {f"feature {i}": rng.normal(size=300) for i in range(30)} | {"y": rng.random(300) < 0.5}
    )
    pq.write_table(wide, folder / "long.parquet")
    asked = ("rank", "long.parquet", "-t", "y", "--out", "long.html", "--quiet")
    assert holdtrue(*asked).code == 0
    return folder


@pytest.fixture
def visit(browser, pages):
    """The browser on one of the pages, light or dark, of some width."""

    def go(page, *, scheme="light", width=1000):
        size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        for kind in ("browser", "performance"):  # what was logged before is not about this page
            browser.get_log(kind)
        browser.get((pages / f"{page}.html").as_uri())
        return browser

    return go


# --- what is seen -------------------------------------------------------------------------------


@every_page
def test_a_page_draws_its_charts_without_an_error_or_a_request(page, visit):
    seen = visit(page)
    column = seen.find_element(By.TAG_NAME, "main").size["width"]
    for chart in (charts := seen.find_elements(By.CSS_SELECTOR, ".wide > svg")):
        assert chart.size["width"] == column
        assert chart.size["height"] > 80
        assert chart.find_elements(By.CSS_SELECTOR, "text")
        assert chart.find_elements(By.CSS_SELECTOR, "polyline, circle, rect")
    assert charts
    for heading in seen.find_elements(By.CSS_SELECTOR, "h1, h2, h3, .answer, caption"):
        assert heading.is_displayed()
        assert heading.text
    assert [entry for entry in seen.get_log("browser") if entry["level"] != "INFO"] == []
    told = [json.loads(entry["message"])["message"] for entry in seen.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in told if m["method"].endswith("WillBeSent")]
    assert any(url.endswith(f"{page}.html") for url in asked)
    assert all(url.startswith(("file:", "data:")) for url in asked), asked


@every_page
@pytest.mark.parametrize("width", [1280, 390])
def test_labels_of_a_chart_stay_inside_it(page, width, visit):
    clipped = """
        return [...document.querySelectorAll("figure svg[role=img]")].flatMap((svg) => {
          const frame = svg.getBoundingClientRect();
          return [...svg.querySelectorAll("text")].filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1
              || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
          }).map((text) => text.textContent);
        });"""
    assert visit(page, width=width).execute_script(clipped) == []


@every_page
def test_names_that_hold_markup_do_nothing(page, visit):
    seen = visit(page)
    with pytest.raises(NoAlertPresentException):
        _ = seen.switch_to.alert
    assert seen.find_elements(By.CSS_SELECTOR, "img, iframe, object, b, i, [onerror]") == []
    assert len(seen.find_elements(By.TAG_NAME, "script")) == 1
    if page != "demo":
        shown = seen.execute_script("return document.body.textContent")
        assert SCRIPT in shown or "alert(1)" in shown


def test_a_script_that_got_in_would_not_run(visit, pages):
    page = (pages / "rank.html").read_text("utf-8")
    hostile = page.replace("<main>", f"<main>{SCRIPT}<img src=x onerror=alert(1)>")
    (pages / "hostile.html").write_text(hostile, "utf-8")
    seen = visit("hostile")
    with pytest.raises(NoAlertPresentException):
        _ = seen.switch_to.alert
    assert any("Content Security Policy" in entry["message"] for entry in seen.get_log("browser"))


@every_page
def test_a_page_is_below_a_megabyte(page, pages):
    assert (pages / f"{page}.html").stat().st_size < 1_000_000


# --- sorting ------------------------------------------------------------------------------------


def column(seen, place):
    cells = "[...document.querySelectorAll('tbody tr')].map((row) => row.cells[arguments[0]])"
    return seen.execute_script(f"return {cells}.map((cell) => cell.innerText)", place)


@pytest.mark.parametrize("how", ["click", "keyboard"])
def test_numbers_sort_as_numbers_with_missing_ones_last(how, visit):
    seen = visit("path")
    heading = seen.find_element(By.CSS_SELECTOR, "th:nth-child(3)")
    button = heading.find_element(By.TAG_NAME, "button")
    press = button.click if how == "click" else lambda: button.send_keys(Keys.ENTER)
    press()
    assert column(seen, 2) == ["−1", "2", "9", "10", "100", "∞", "–"]
    assert heading.get_attribute("aria-sort") == "ascending"
    press()
    assert column(seen, 2) == ["∞", "100", "10", "9", "2", "−1", "–"]
    assert heading.get_attribute("aria-sort") == "descending"


@pytest.mark.parametrize("how", ["click", "keyboard"])
def test_texts_sort_as_people_do(how, visit):
    seen = visit("path")
    number, text = seen.find_elements(By.CSS_SELECTOR, "th")[:2]
    number.find_element(By.TAG_NAME, "button").click()
    button = text.find_element(By.TAG_NAME, "button")
    button.click() if how == "click" else button.send_keys(Keys.ENTER)
    shown = column(seen, 1)
    assert shown.index("9") < shown.index("10") < shown.index("Apple") < shown.index("zebra")
    assert shown[-1] == ""  # the empty selection, which has no name
    assert (number.get_attribute("aria-sort"), text.get_attribute("aria-sort")) == (
        None,
        "ascending",
    )


@pytest.mark.parametrize("page", ["rank", "select", "transfer", "size"])
def test_every_heading_sorts_the_table(page, visit):
    seen = visit(page)
    for button in seen.find_elements(By.CSS_SELECTOR, ".tools button"):
        button.click()
    for place, heading in enumerate(seen.find_elements(By.CSS_SELECTOR, "th")):
        before = sorted(column(seen, place))
        heading.find_element(By.TAG_NAME, "button").click()
        assert heading.get_attribute("aria-sort") == "ascending"
        assert len(seen.find_elements(By.CSS_SELECTOR, "[aria-sort]")) == 1
        assert sorted(column(seen, place)) == before


# --- folding and finding ------------------------------------------------------------------------


def test_secondary_columns_and_later_rows_are_folded_until_asked_for(visit):
    seen = visit("long")
    columns, rows = seen.find_elements(By.CSS_SELECTOR, ".tools button")
    table = seen.find_element(By.TAG_NAME, "table")
    shown = {"th": 9, "tbody tr": 20}
    for selector, wanted in shown.items():
        parts = table.find_elements(By.CSS_SELECTOR, selector)
        assert sum(part.is_displayed() for part in parts) == wanted
        assert len(parts) > wanted
    assert columns.get_attribute("aria-expanded") == "false"
    columns.click()
    rows.click()
    assert columns.get_attribute("aria-expanded") == "true"
    for selector in shown:
        assert all(p.is_displayed() for p in table.find_elements(By.CSS_SELECTOR, selector))


def test_a_row_is_found_by_a_part_of_its_name(visit):
    seen = visit("long")
    seen.find_element(By.CSS_SELECTOR, "input[type=search]").send_keys("Feature 27")
    rows = seen.find_elements(By.CSS_SELECTOR, "tbody tr")
    assert [r.text.split()[2] for r in rows if r.is_displayed()] == ["27"]


def test_the_words_of_a_table_are_explained_on_the_page_and_in_print(visit):
    seen = visit("size")
    word = seen.find_element(By.XPATH, "//td/abbr[text()='dee']")
    assert "eigenvalue" in word.get_attribute("title")
    assert "eigenvalue" in seen.find_element(By.CLASS_NAME, "terms").text
    seen.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert seen.find_element(By.CLASS_NAME, "terms").is_displayed()
    seen.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


# --- for everyone -------------------------------------------------------------------------------


@every_page
@pytest.mark.parametrize("scheme, width", [("light", 1000), ("dark", 390)])
@pytest.mark.skipif(not AXE.exists(), reason="no axe-core: run make browser")
def test_no_rule_of_accessibility_is_broken(page, scheme, width, visit):
    seen = visit(page, scheme=scheme, width=width)
    # Through the protocol: the page's own policy lets no other script in.
    seen.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text("utf-8")})
    found = seen.execute_cdp_cmd(
        "Runtime.evaluate",
        {"expression": "axe.run().then(JSON.stringify)", "awaitPromise": True},
    )
    result = json.loads(found["result"]["value"])
    assert len(result["passes"]) > 15
    assert [
        (rule["id"], [node["html"][:200] for node in rule["nodes"]])
        for rule in result["violations"]
    ] == []


@every_page
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_follows_the_reader_s_colours(page, scheme, visit):
    seen = visit(page, scheme=scheme)
    paint = "return getComputedStyle(document.body)[arguments[0]].match(/\\d+/g).map(Number)"
    paper, ink = (sum(seen.execute_script(paint, name)) for name in ("backgroundColor", "color"))
    assert (paper > ink) == (scheme == "light")


@every_page
def test_a_page_fits_a_phone(page, visit):
    seen = visit(page, width=390)
    assert seen.execute_script("return document.documentElement.scrollWidth") <= 390
    cut = """
        return [...document.querySelectorAll(".drawing, .shapes, .scroll, table, td, figure svg")]
          .filter((part) => part.getBoundingClientRect().right > 390
            || (part.tagName != "svg" && part.scrollWidth > part.clientWidth + 1
                && getComputedStyle(part).display != "inline"))
          .map((part) => part.outerHTML.slice(0, 90));"""
    assert seen.execute_script(cut) == []
    size = "return Number.parseFloat(getComputedStyle(document.querySelector('.answer')).fontSize)"
    assert seen.execute_script(size) >= 15
    letters = """
        return Math.min(...[...document.querySelectorAll("figure svg text")]
          .map((text) => text.getBoundingClientRect())
          .map((box) => Math.min(box.width, box.height)).filter((size) => size > 0));"""
    assert seen.execute_script(letters) >= 3  # the narrowest is a minus or an l


@every_page
def test_a_page_prints(page, visit):
    seen = visit(page)
    printed = patiently(lambda: seen.execute_cdp_cmd("Page.printToPDF", {"printBackground": True}))
    content = base64.b64decode(printed["data"])
    assert content.startswith(b"%PDF")
    assert len(content) > 20_000


def test_the_way_from_a_file_to_a_promise_kept_is_told_on_its_pages(visit, pages, command_line):
    """rank, select, compare and save on twelve hospitals; predict and check on twenty others."""
    write_data(pages / "way", seed=0)
    run = command_line(pages / "way")
    question = ("hospitals.csv", "--target", "recovery", "--domain", "hospital")
    field = ("--models", "mean,ridge,steady_ridge")
    steps = {
        "rank": ("rank", *question),
        "select": ("select", *question),
        "compare": ("compare", *question, *field, "--save", "m.skops"),
        "check": ("check", "m.skops", "new_hospitals.csv"),
    }
    answers = {}
    for name, asked in steps.items():
        ended = run(*asked, "--json", "--out", f"{name}.html")
        assert ended.code == 0, ended
        answers[name] = json.loads(ended.out)["answer"]
        text = visit(f"way/{name}").find_element("tag name", "body").text
        assert " ".join(answers[name].split()) in " ".join(text.split())
    assert run("predict", "m.skops", "new_hospitals.csv", "--out", "p.csv").code == 0
    assert len((pages / "way" / "p.csv").read_text().splitlines()) == 2001
    assert "steady" in answers["select"]
    assert "Kept in m.skops" in answers["compare"]
    assert "The promise was kept" in answers["check"]
