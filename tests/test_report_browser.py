"""The report's page in a real browser: it asks for nothing, says nothing on the console, and does what it offers."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from opening import open_trace
from rank_traces import Run
from sweeps import sweep

import nsys_insight
from nsys_insight import outputs
from nsys_insight.compare.answer import decision_sentence
from nsys_insight.compare.comparison import compare
from nsys_insight.compare.runs import measure
from nsys_insight.packs.step_options import AUTO
from nsys_insight.page import compare as compared_page
from nsys_insight.page import page_text
from nsys_insight.text.units import value

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
        outputs.save(target, page_text(trace, "html"))
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
    # A file that is saved comes from the page itself.
    known = (path.as_uri(), "blob:")
    one.on("request", lambda request: None if request.url.startswith(known) else wrong.append(request.url))
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


@pytest.mark.slow
def test_the_script_writes_times_as_the_rest_of_the_page_does(page):
    times = [0, *(int(edge * factor) for edge in (1, 1e3, 1e6, 1e9) for factor in (1, 1.234, 12.34, 123.4, 999.4))]
    assert page.evaluate("times => times.map(time)", times) == [value("a_ns", ns) for ns in times]


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
    page.locator(".timeline .idle .starved:not(.crowd)").first.hover()
    assert tip.text_content().startswith("idle\n")
    assert "starved, " in tip.text_content()
    page.mouse.move(5, 5)
    assert not tip.is_visible()


def ticks(page):
    drawn(page)
    return page.locator(".timeline .tick").all_text_contents()


def drawn(page):
    """Wait for what is to be drawn."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_the_timeline_is_walked_with_arrow_keys(page):
    page.locator(".canvas").focus()
    seen = []
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
        drawn(page)
        seen.append(page.locator(".timeline .here").get_attribute("data-tip"))
    assert seen[0].startswith("H2D copy")
    assert seen[1] == seen[3] != seen[2]
    assert seen[4].startswith("idle\n")
    assert page.locator("#said").text_content() == seen[-1]
    page.locator("#tip").wait_for(state="visible")


def test_the_timeline_is_zoomed_and_moved_and_names_appear_where_there_is_room(page):
    step, named = ticks(page), page.locator(".timeline .gpu text")
    before = named.count()
    box = page.locator(".canvas").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.move(*middle)
    page.mouse.wheel(0, -300)
    assert ticks(page) == step, "a wheel scrolls the page until the timeline was chosen"
    page.evaluate("scrollTo(0, 0)")
    page.locator(".canvas").focus()
    box = page.locator(".canvas").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.move(*middle)
    for _ in range(8):
        page.mouse.wheel(0, -300)
    near = ticks(page)
    assert near != step
    assert named.count() > before
    assert re.match(r"Step 11: .* µs of it, from .*ms", page.locator(".where").text_content())
    page.mouse.down()
    page.mouse.move(middle[0] - 300, middle[1], steps=4)
    page.mouse.up()
    moved = ticks(page)
    assert float(moved[0].split()[0].replace(",", "")) > float(near[0].split()[0].replace(",", ""))
    page.get_by_role("button", name="Run", exact=True).click()
    drawn(page)
    assert "89." in page.locator(".where").text_content()
    page.locator(".timeline .gpu .crowd").first.click()
    assert ticks(page) != step
    page.get_by_role("button", name="Step", exact=True).click()
    assert ticks(page) == step
    page.get_by_role("button", name="Zoom in").first.click()
    assert len(set(ticks(page)) & set(step)) < len(step)
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 100, middle[1])
    page.mouse.down()
    page.mouse.move(box["x"] + 200, middle[1], steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    drawn(page)
    ends = page.locator(".where").text_content()
    assert ends.startswith("Step 11: "), ends
    assert "µs of it" in ends


def test_a_click_on_the_run_loads_a_step_or_a_gap(page):
    run, where = page.locator(".overview"), page.locator(".where")
    assert page.locator(".overview .a-step").count() == 33
    run.click(position={"x": run.bounding_box()["width"] - 3, "y": 54})
    drawn(page)
    assert where.text_content() == "Step 31: 2.72 ms"
    run.press("ArrowLeft")
    assert page.locator("#said").text_content().startswith("Step 30: ")
    assert run.get_attribute("aria-valuetext").startswith("Step 30: ")
    page.get_by_role("button", name="Step before").click()
    drawn(page)
    assert where.text_content().startswith("Step 29: ")
    page.locator(".overview .a-gap text").last.click()
    assert page.locator("#said").text_content().startswith("Gap of ")
    drawn(page)
    assert page.locator(".timeline .idle .starved").count() >= 1
    run.press("Home")
    drawn(page)
    assert where.text_content().startswith("Prefill: ")
    assert page.locator(".elsewhere").is_hidden()


def test_what_comes_to_lie_under_a_pointer_at_rest_shows_no_tip(page):
    drawer, kernel = page.locator("#drawer"), page.locator("#top-kernels li").first
    kernel.press("Enter")
    bar = drawer.locator(".histogram [data-tip]").first.bounding_box()
    page.keyboard.press("Escape")
    page.mouse.move(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    kernel.press("Enter")
    page.wait_for_timeout(300)
    assert page.locator("#tip").is_hidden()
    page.mouse.move(bar["x"] + bar["width"] / 2 + 1, bar["y"] + bar["height"] / 2)
    assert page.locator("#tip").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    assert drawer.is_visible()
    page.keyboard.press("Escape")
    assert drawer.is_hidden()


def test_a_kernel_opens_a_drawer(page):
    drawer = page.locator("#drawer")
    page.locator(".timeline .gpu .attention[data-kernel]").first.click()
    assert drawer.locator("select option:checked").text_content().startswith("cudnn_generated_fort_native_sdpa")
    assert drawer.locator(".histogram").count() == 2
    titles = drawer.locator("h3").all_text_contents()
    assert titles[:2] == ["Durations, on a logarithmic scale", "Time in each steady step"]
    assert titles[2:] == ["Launch shapes, by time", "Launched from, in the step shown first", "What bounds it"]
    page.keyboard.press("Escape")
    assert drawer.is_hidden()
    page.locator("#top-kernels li").nth(1).press("Enter")
    assert drawer.locator(".whole").text_content().startswith("void at::native::")
    assert page.evaluate("document.activeElement.className") == "close"
    drawer.locator("select").select_option("0")
    assert drawer.locator(".whole").text_content() == "nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN"
    page.keyboard.press("Escape")
    assert drawer.is_hidden()
    assert page.evaluate("document.activeElement.dataset.card") == "1"
    page.locator(".canvas").focus()
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert drawer.is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert drawer.is_hidden()


def test_what_is_shown_is_saved_for_perfetto(page):
    with page.expect_download() as saved:
        page.get_by_role("button", name="For Perfetto").click()
    assert saved.value.suggested_filename == "step-11.json"
    events = json.loads(Path(saved.value.path()).read_text(encoding="utf-8"))["traceEvents"]
    kinds = {event["cat"] for event in events if event["ph"] == "X"}
    assert kinds == {"nvtx", "host", "gpu", "idle", "step"}
    assert sum(event.get("cat") == "gpu" for event in events) == 198
    assert "ui.perfetto.dev" in page.locator(".where").text_content()


def test_a_command_is_copied(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    code = page.locator("#top .more code")
    page.locator("#top .more .copy-it").click()
    page.locator("#top .more .copy-it", has_text="copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == code.text_content()


def test_what_is_searched_for_is_marked_and_walked_to(page):
    find = page.get_by_label("Search kernels, ranges and calls in the timeline")
    find.fill("sdpa attention")
    assert page.locator(".found-count").text_content() == "132 found"
    drawn(page)
    assert 0 < page.locator(".timeline .found").count() < page.locator(".timeline .mark").count()
    find.press("Enter")
    drawn(page)
    first = page.locator(".timeline .here").get_attribute("data-tip")
    assert "sdpa" in first
    find.press("Enter")
    drawn(page)
    assert page.locator(".timeline .here").get_attribute("data-tip") != first
    assert page.locator(".found-count").text_content().endswith(" of 132")
    find.fill("no such thing")
    assert page.locator(".found-count").text_content() == "nothing found"
    find.press("Escape")
    drawn(page)
    assert page.locator(".timeline .found").count() == 0


def test_a_heading_says_what_its_column_means_when_it_has_the_focus(page):
    page.locator("#top th button").first.focus()
    page.keyboard.press("Tab")
    assert page.locator("#tip").text_content() == page.evaluate("document.activeElement.dataset.tip")
    page.keyboard.press("Escape")
    assert not page.locator("#tip").is_visible()


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (400, "dark"), *sweep([(1280, "dark"), (400, "light")])]
)
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


@pytest.mark.slow
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
        outputs.save(folder / "report.html", page_text(trace, "html"))
    return folder / "report.html"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (400, "light")])
def test_two_runs_are_compared_on_one_scale(browser, compared, width, scheme):
    path, said = compared
    with opened(browser, path, color_scheme=scheme) as one:
        one.set_viewport_size({"width": width, "height": 900})
        drawn(one)
        assert one.locator(".verdict").text_content() == said
        assert one.locator("#tables details").count() >= 3
        assert one.locator(".timeline").count() == 2
        ticks = [box.locator(".tick").all_text_contents() for box in one.locator(".timeline").all()]
        assert ticks[0] == ticks[1] != []
        one.locator(".strip").first.get_by_role("button", name="Zoom in").click()
        drawn(one)
        moved = [box.locator(".tick").all_text_contents() for box in one.locator(".timeline").all()]
        assert moved[0] == moved[1] != ticks[0]
        assert one.evaluate("document.documentElement.scrollWidth") == width
        assert one.evaluate(CONTRASTS) == []


@pytest.fixture(scope="module")
def compared(sample, tmp_path_factory):
    """Write the page of a decoder before and after it was captured in a graph; and what is to be its headline."""
    target = tmp_path_factory.mktemp("compared") / "compared.html"
    with open_trace(sample("decode_eager")) as before, open_trace(sample("decode_graph_node")) as after:
        outputs.save(target, compared_page.page(before, after, AUTO))
        runs = [[measure(trace)] for trace in (before, after)]
    return target, decision_sentence(compare(*runs))
