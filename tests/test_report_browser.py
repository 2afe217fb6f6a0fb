"""The report's page in a real browser: it asks for nothing, says nothing on the console, and does what it offers."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest
from opening import open_trace
from rank_traces import Run

import nsys_insight
from nsys_insight import outputs
from nsys_insight.page import file

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

if BROWSER is None:
    pytest.skip("needs Chromium", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def path(sample, tmp_path_factory):
    """Write the report of a decoder once."""
    target = tmp_path_factory.mktemp("report") / "report.html"
    with open_trace(sample("decode_eager")) as trace:
        outputs.save(target, file.page_text(trace, "html"))
    return target


@pytest.fixture
def page(browser, path):
    with opened(browser, path) as one:
        yield one


@contextmanager
def opened(browser, path, **options):
    """Open the page, and hold it to its promises: no error, no warning, no request."""
    wrong = []
    one = browser.new_page(viewport={"width": 1280, "height": 900}, **options)
    one.set_default_timeout(5_000)
    one.on("console", lambda message: wrong.append(message.text))
    one.on("pageerror", lambda error: wrong.append(str(error)))
    one.on("request", lambda request: wrong.append(request.url) if request.url != path.as_uri() else None)
    one.goto(path.as_uri())
    yield one
    one.close()
    assert wrong == []


def numbers(page, report, column):
    """The raw numbers of a column, as far as its rows are shown."""
    return page.eval_on_selector_all(
        f"#{report} tbody tr:not([hidden])",
        f"rows => rows.map(row => row.cells[{column}].dataset.v).map(text => text ? Number(text) : null)",
    )


def test_a_table_is_sorted_by_the_column_that_is_clicked(page):
    page.locator("#launches > summary").click()
    head = page.locator("#launches th", has_text="calls").first
    column = head.evaluate("head => head.cellIndex")
    before = numbers(page, "launches", column)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert numbers(page, "launches", column) == sorted(before, reverse=True) != before
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert numbers(page, "launches", column) == sorted(before)


def test_texts_are_sorted_by_the_alphabet_and_with_the_keyboard(page):
    button = page.locator("#top th button", has_text="family").first
    button.focus()
    page.keyboard.press("Enter")
    column = button.evaluate("button => button.closest('th').cellIndex")
    texts = page.locator(f"#top tbody td:nth-child({column + 1})").all_text_contents()
    assert texts == sorted(texts)
    assert len(set(texts)) > 3
    assert page.locator("#top th[aria-sort]").count() == 1


def test_what_is_unknown_is_last_either_way(page):
    page.locator("#api > summary").click()
    for column in page.eval_on_selector_all(
        "#api tbody tr:first-child td[data-v]", "cells => cells.map(cell => cell.cellIndex)"
    ):
        for _ in range(2):
            page.locator("#api th").nth(column).locator("button").click()
            found = numbers(page, "api", column)
            known = [one for one in found if one is not None]
            assert found == known + [None] * (len(found) - len(known))


def test_a_filter_keeps_the_rows_with_all_its_words(page):
    search = page.locator('#top input[type="search"]')
    search.fill("gemm cublas")
    shown = page.locator("#top tbody tr:visible").all_text_contents()
    assert shown
    assert all("gemm" in text.lower() and "cublas" in text.lower() for text in shown)
    assert (
        page.locator("#top output").text_content()
        == f"{len(shown)} of {len(numbers(page, 'top', 1)) + hidden(page)} rows"
    )
    search.fill("")
    assert hidden(page) == 0


def hidden(page):
    return page.locator("#top tbody tr[hidden]").count()


def test_a_section_folds_and_a_link_to_it_unfolds_it(page):
    table = page.locator("#top table")
    assert table.is_visible()
    page.locator("#top > summary").click()
    assert not table.is_visible()
    page.evaluate("location.hash = '#top'")
    table.wait_for(state="visible")


def test_a_finding_leads_to_its_table(page):
    assert not page.locator("#fusion table").is_visible()
    page.locator('#diagnosis a[href="#fusion"]').click()
    page.locator("#fusion table").wait_for(state="visible")


def test_a_long_name_unfolds(page):
    name = page.locator("#top details.name").first
    assert not name.locator("code").is_visible()
    name.locator("summary").click()
    assert name.locator("code").text_content().startswith("void at::native::")


def test_details_are_columns_on_demand(page):
    page.locator("#fusion > summary").click()
    column = page.locator("#fusion th.detail").first
    assert not column.is_visible()
    page.locator("#fusion .all").check()
    assert column.is_visible()


def test_pointing_at_the_timeline_says_what_is_there(page):
    tip = page.locator("#tip")
    assert not tip.is_visible()
    page.locator(".timeline .gpu .attention").first.hover()
    assert tip.is_visible()
    assert tip.text_content().startswith("cudnn_generated_fort_native_sdpa")
    page.locator(".timeline .idle .starved").first.hover()
    assert tip.text_content().startswith("idle\n")
    assert "starved, " in tip.text_content()
    page.mouse.move(5, 5)
    assert not tip.is_visible()


def test_the_timeline_is_walked_with_arrow_keys(page):
    page.locator(".strip .scroll").focus()
    seen = []
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
        seen.append(page.locator(".timeline .here").get_attribute("data-tip"))
    assert seen[0].startswith("H2D copy")
    assert seen[1] == seen[3] != seen[2]
    assert seen[4].startswith("idle\n")
    assert page.locator("#said").text_content() == seen[-1]
    page.locator("#tip").wait_for(state="visible")


def test_the_timeline_is_zoomed(page):
    width = page.locator(".timeline").bounding_box()["width"]
    page.get_by_label("Zoom in").click()
    assert page.locator(".timeline").bounding_box()["width"] == pytest.approx(2 * width)
    page.locator(".strip .scroll").focus()
    page.keyboard.press("+")
    assert page.locator(".timeline").bounding_box()["width"] == pytest.approx(4 * width)
    page.get_by_role("button", name="Whole").click()
    assert page.locator(".timeline").bounding_box()["width"] == pytest.approx(width)


def test_a_heading_says_what_its_column_means_when_it_has_the_focus(page):
    page.locator("#top th button").first.focus()
    page.keyboard.press("Tab")
    assert page.locator("#tip").text_content() == page.evaluate("document.activeElement.dataset.tip")
    page.keyboard.press("Escape")
    assert not page.locator("#tip").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_it_fits_the_window_and_can_be_read(browser, path, width, scheme):
    with opened(browser, path, color_scheme=scheme) as page:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("document.querySelectorAll('details.report').forEach(one => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(CONTRASTS) == []


# The texts whose contrast with the page is less than 4.5, as WCAG 2.1 AA asks for (https://www.w3.org/TR/WCAG21/#contrast-minimum).
CONTRASTS = """() => {
  const light = text => {
    const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map(Number)
      .map(one => one / 255).map(one => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = one => {
    for (; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if (!/, 0\\)$/.test(color)) return color;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  return [...document.querySelectorAll("p, li, td, th, dt, dd, h1, h2, h3, a, b, code, summary, figcaption, .label")]
    .filter(one => one.offsetParent && one.textContent.trim())
    .filter(one => {
      const [a, b] = [light(getComputedStyle(one).color), light(behind(one))].sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05) < 4.5;
    })
    .map(one => one.outerHTML.slice(0, 120));
}"""


def test_on_paper_everything_is_unfolded(page):
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.report:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.report:not([open])").count() > 5
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_a_run_of_ranks_is_drawn(browser, run_of_ranks, width, scheme):
    with opened(browser, run_of_ranks, color_scheme=scheme) as one:
        one.set_viewport_size({"width": width, "height": 900})
        cells = one.locator("#rank-steps .lanes rect")
        assert cells.count() == 3 * 7, "of eight steps the first one has no collective before it"
        assert one.locator("#rank-steps .lanes rect.late").count() == 2
        late = one.locator("#rank-steps .lanes rect.late").first
        late.hover()
        assert one.locator("#tip").text_content().startswith("rank 1, step 3: ")
        assert "late by 8" in one.locator("#tip").text_content()
        assert one.locator("#rank-steps svg[role=img]").get_attribute("aria-label").endswith("late: rank 1 2 times")
        # Two kernels and two collectives on each rank, and the wait of two of them for the third.
        assert one.locator("#rank-step .lanes rect.blocked").count() >= 2
        assert "AllReduce" in one.locator("#rank-skews li").first.text_content()
        assert "rank 1 last" in one.locator("#rank-skews li").first.text_content()
        assert one.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def run_of_ranks(tmp_path_factory):
    """Write the report of three ranks, the second of which is late in two steps."""
    folder = tmp_path_factory.mktemp("run")
    run = Run(3, steps=8)
    run.python[1] = {3: 8_000_000, 6: 8_000_000}
    with nsys_insight.open(run.write(folder), use_cache=False) as trace:
        outputs.save(folder / "report.html", file.page_text(trace, "html"))
    return folder / "report.html"
