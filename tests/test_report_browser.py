"""The report page in a real browser: it makes no requests, logs nothing to the console, and its controls work."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from opening import only_rules, open_trace
from rank_traces import Run
from sweeps import sweep
from synthetic import Trace as Synthetic

import nsys_insight
from nsys_insight import outputs
from nsys_insight.compare.answer import describe_decision
from nsys_insight.compare.comparison import compare
from nsys_insight.compare.runs import measure
from nsys_insight.notebook.html import add_style
from nsys_insight.packs.step_options import AUTO
from nsys_insight.page import compare as compare_page
from nsys_insight.page import write_page
from nsys_insight.page.tracks import Limits
from nsys_insight.text.units import value

VIEWPORT = {"width": 1280, "height": 900}
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

if BROWSER is None:
    pytest.skip("needs Chromium", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def path(sample, tmp_path_factory):
    """Write the report of a decoder once."""
    target = tmp_path_factory.mktemp("report") / "report.html"
    with open_trace(sample("decode_eager")) as trace:
        outputs.write_output(target, write_page(trace, "html"))
    return target


@pytest.fixture(scope="module")
def tab(browser):
    """Give one tab, which loads the page again for each test: that costs half of a new one."""
    return browser.new_page(viewport=VIEWPORT)


@pytest.fixture
def page(tab, path):
    tab.emulate_media(media="null")
    tab.mouse.move(0, 0)
    with show_page(tab, path):
        yield tab
    tab.goto("about:blank")


@pytest.fixture(scope="module")
def same_page(browser, path):
    """Give a page that is loaded once, for tests that change separate parts of it."""
    with open_page(browser, path) as page:
        yield page


@contextmanager
def open_page(browser, path, **options):
    """Open the page in a new tab."""
    page = browser.new_page(viewport=VIEWPORT, **options)
    with show_page(page, path):
        yield page
    page.close()


@contextmanager
def show_page(page, path):
    """Load the page. Fail on errors, console messages and requests."""
    problems = []
    # The page saves files through blob URLs.
    own_urls = (path.as_uri(), "blob:")
    listeners = {
        "console": lambda message: problems.append(message.text),
        "pageerror": lambda error: problems.append(str(error)),
        "request": lambda request: None if request.url.startswith(own_urls) else problems.append(request.url),
    }
    page.set_default_timeout(5_000)
    for event, listener in listeners.items():
        page.on(event, listener)
    page.goto(path.as_uri())
    yield
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    assert problems == []


def read_numbers(page, report, column):
    """Return the raw numbers of a column, in the visible rows."""
    return page.eval_on_selector_all(
        f"#{report} tbody tr:not([hidden])",
        f"rows => rows.map(row => row.cells[{column}].dataset.v).map(text => text ? Number(text) : null)",
    )


@pytest.mark.slow
def test_the_script_writes_times_as_the_rest_of_the_page_does(page):
    times = [0, *(int(edge * factor) for edge in (1, 1e3, 1e6, 1e9) for factor in (1, 1.234, 12.34, 123.4, 999.4))]
    assert page.evaluate("times => times.map(time)", times) == [value("a_ns", ns) for ns in times]


def test_a_table_is_sorted_by_the_column_that_is_clicked(same_page):
    same_page.locator("#launches > summary").click()
    head = same_page.locator("#launches th", has_text="calls").first
    column = head.evaluate("head => head.cellIndex")
    before = read_numbers(same_page, "launches", column)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert read_numbers(same_page, "launches", column) == sorted(before, reverse=True) != before
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert read_numbers(same_page, "launches", column) == sorted(before)


def test_texts_are_sorted_alphabetically_by_the_keyboard(same_page):
    button = same_page.locator("#top th button", has_text="family").first
    button.focus()
    same_page.keyboard.press("Enter")
    column = button.evaluate("button => button.closest('th').cellIndex")
    texts = same_page.locator(f"#top tbody td:nth-child({column + 1})").all_text_contents()
    assert texts == sorted(texts)
    assert len(set(texts)) > 3
    assert same_page.locator("#top th[aria-sort]").count() == 1


def test_unknown_values_are_last_in_both_directions(same_page):
    same_page.locator("#api > summary").click()
    for column in same_page.eval_on_selector_all(
        "#api tbody tr:first-child td[data-v]", "cells => cells.map(cell => cell.cellIndex)"
    ):
        for _ in range(2):
            same_page.locator("#api th").nth(column).locator("button").click()
            values = read_numbers(same_page, "api", column)
            present = [number for number in values if number is not None]
            assert values == present + [None] * (len(values) - len(present))


def test_a_filter_keeps_the_rows_with_all_its_words(same_page):
    search = same_page.locator('#top input[type="search"]')
    search.fill("gemm cublas")
    visible_rows = same_page.locator("#top tbody tr:visible").all_text_contents()
    assert visible_rows
    assert all("gemm" in text.lower() and "cublas" in text.lower() for text in visible_rows)
    assert (
        same_page.locator("#top output").text_content()
        == f"{len(visible_rows)} of {len(read_numbers(same_page, 'top', 1)) + count_hidden_rows(same_page)} rows"
    )
    search.fill("")
    assert count_hidden_rows(same_page) == 0


def count_hidden_rows(page):
    return page.locator("#top tbody tr[hidden]").count()


def test_a_section_folds_and_a_link_to_it_unfolds_it(same_page):
    table = same_page.locator("#top table")
    assert table.is_visible()
    same_page.locator("#top > summary").click()
    assert not table.is_visible()
    same_page.evaluate("location.hash = '#top'")
    table.wait_for(state="visible")


def test_a_finding_leads_to_its_table(page):
    assert not page.locator("#fusion table").is_visible()
    page.locator('#findings a[href="#fusion"]').click()
    page.locator("#fusion table").wait_for(state="visible")


def test_a_long_name_unfolds(same_page):
    name = same_page.locator("#top details.name").first
    assert not name.locator("code").is_visible()
    name.locator("summary").click()
    assert name.locator("code").text_content().startswith("void at::native::")


def test_details_are_columns_on_demand(same_page):
    same_page.locator("#fusion > summary").click()
    column = same_page.locator("#fusion th.detail").first
    assert not column.is_visible()
    same_page.locator("#fusion .all").check()
    assert column.is_visible()


def test_hovering_over_the_timeline_shows_a_tip(page):
    tip = page.locator("#tip")
    assert not tip.is_visible()
    page.locator(".timeline .gpu .attention").first.hover()
    assert tip.is_visible()
    assert tip.text_content().startswith("cudnn_generated_fort_native_sdpa")
    page.locator(".timeline .idle .starved:not(.crowd)").first.hover()
    assert tip.text_content().startswith("idle\n")
    assert "launch, " in tip.text_content()
    page.mouse.move(5, 5)
    assert not tip.is_visible()


def test_the_label_of_a_mark_that_is_pointed_at_has_no_outline(page):
    # As the timeline's script draws it where the mark is wide enough; `here` has the style of a hovered one.
    strokes = page.evaluate(
        """() => {
            const picture = document.createElement("div");
            picture.innerHTML = '<svg><svg class="mark here"><rect class="gemm"/><text>name</text></svg></svg>';
            document.querySelector("#timeline").append(picture);
            return [...picture.querySelectorAll(".mark, text")].map(part => getComputedStyle(part).stroke);
        }"""
    )
    assert strokes[0].startswith("rgb")
    assert strokes[1] == "none"


def test_in_jupyterlab_names_are_on_the_left_and_pictures_fit(browser, sample):
    with open_trace(sample("churn")) as trace:
        table, pictures = trace.answer("top")._repr_html_(), [trace.timeline().svg, trace.idle_plot().svg]
    page = browser.new_page()
    # JupyterLab 4 styles the tables of outputs with this selector.
    rule = ":not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon td { text-align: right; }"
    page.set_content(
        f"<style>{rule}</style><div style='width: 600px'><div class='jp-RenderedHTMLCommon'>{table}</div>"
        f"{''.join(f'<section>{picture}</section>' for picture in pictures)}</div>"
    )
    sides = page.eval_on_selector_all(
        "td", "cells => cells.map(cell => [cell.classList.contains('right'), getComputedStyle(cell).textAlign])"
    )
    assert {tuple(side) for side in sides} == {(True, "right"), (False, "left")}
    sizes = page.eval_on_selector_all("section > svg", "drawn => drawn.map(svg => svg.getBoundingClientRect().width)")
    assert sizes == [600, 600]
    page.close()


def read_ticks(page):
    wait_until_drawn(page)
    return page.locator(".timeline .tick").all_text_contents()


def wait_until_drawn(page):
    """Wait until the page is drawn."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_arrow_keys_move_through_the_timeline(page):
    page.locator(".canvas").focus()
    tips = []
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
        wait_until_drawn(page)
        tips.append(page.locator(".timeline .here").get_attribute("data-tip"))
    assert tips[0].startswith("H2D copy")
    assert tips[1] == tips[3] != tips[2]
    assert tips[4].startswith("idle\n")
    assert page.locator("#said").text_content() == tips[-1]
    page.locator("#tip").wait_for(state="visible")


def test_letters_zoom_and_pan_as_in_perfetto(page):
    page.locator(".canvas").focus()
    before = read_ticks(page)
    for first_key, second_key in ("ws", "da"):
        page.keyboard.press(first_key)
        wait_until_drawn(page)
        assert read_ticks(page) != before
        page.keyboard.press(second_key)
        wait_until_drawn(page)
        assert read_ticks(page) == before


def test_the_timeline_is_zoomed_and_moved_and_names_appear_where_there_is_room(page):
    step_ticks, kernel_labels = read_ticks(page), page.locator(".timeline .gpu text")
    before = kernel_labels.count()
    box = page.locator(".canvas").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.move(*middle)
    page.mouse.wheel(0, -300)
    assert read_ticks(page) == step_ticks, "a wheel scrolls the page until the timeline was chosen"
    page.evaluate("scrollTo(0, 0)")
    page.locator(".canvas").focus()
    box = page.locator(".canvas").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.move(*middle)
    for _ in range(8):
        page.mouse.wheel(0, -300)
    zoomed_ticks = read_ticks(page)
    assert zoomed_ticks != step_ticks
    assert kernel_labels.count() > before
    assert re.match(r"Step 11: .* µs of it, from .*ms", page.locator(".where").text_content())
    page.mouse.down()
    page.mouse.move(middle[0] - 300, middle[1], steps=4)
    page.mouse.up()
    moved_ticks = read_ticks(page)
    assert float(moved_ticks[0].split()[0].replace(",", "")) > float(zoomed_ticks[0].split()[0].replace(",", ""))
    page.get_by_role("button", name="Run", exact=True).click()
    wait_until_drawn(page)
    assert "89." in page.locator(".where").text_content()
    page.locator(".timeline .gpu .crowd").first.click()
    assert read_ticks(page) != step_ticks
    page.get_by_role("button", name="Step", exact=True).click()
    assert read_ticks(page) == step_ticks
    page.get_by_role("button", name="Zoom in").first.click()
    assert len(set(read_ticks(page)) & set(step_ticks)) < len(step_ticks)
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 100, middle[1])
    page.mouse.down()
    page.mouse.move(box["x"] + 200, middle[1], steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.get_by_role("button", name="Zoom to selection").click()
    wait_until_drawn(page)
    ends = page.locator(".where").text_content()
    assert ends.startswith("Step 11: "), ends
    assert "µs of it" in ends


def zoom_in(page, times=5):
    page.locator(".canvas").focus()
    for _ in range(times):
        page.keyboard.press("+")
    wait_until_drawn(page)


def test_an_arrow_leads_from_the_call_to_the_kernel_that_is_marked(page, sample):
    zoom_in(page)
    for key in ("Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    wait_until_drawn(page)
    assert page.locator(".timeline .arrow").count() == 1
    left, right = (
        page.eval_on_selector(".timeline .arrow", f"line => line.{end}.baseVal.value") for end in ("x1", "x2")
    )
    left_of_kernel = page.eval_on_selector(".timeline .here", "mark => mark.x.baseVal.value")
    assert left < right == pytest.approx(left_of_kernel, abs=1)
    call_end_ns = page.evaluate(
        "lines[0].data.origin + lines[0].view[0]"
        " + document.querySelector('.timeline .arrow').x1.baseVal.valueInSpecifiedUnits / 100 * lines[0].span"
    )
    kernel_start_ns = page.evaluate("lines[0].data.origin + lines[0].lanes[lines[0].here[0]].from[lines[0].here[1]]")
    with open_trace(sample("decode_eager")) as trace:
        (row,) = trace.rows(
            "SELECT c.end_ns FROM kernels AS k JOIN outer_api_calls AS c USING (process_id, correlation_id)"
            f" WHERE k.start_ns = {kernel_start_ns}"
        )
    assert call_end_ns == pytest.approx(row.end_ns, abs=2)


def test_a_selection_has_totals(page):
    zoom_in(page, 2)
    box = page.locator(".canvas").bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 100, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 60, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    wait_until_drawn(page)
    text = page.locator(".where").text_content()
    assert re.fullmatch(r"Selected .* µs\. calls: .* calls; stream 7: .* operations; GPU idle: .* gaps", text)
    expected = page.evaluate(
        """() => {
            const [from, to] = lines[0].selection, lane = lines[0].lanes.find(({ kind }) => kind === "gpu");
            return time(Math.round([...lane.from].reduce((sum, start, at) =>
                sum + Math.max(0, Math.min(lane.to[at], to) - Math.max(start, from)), 0)));
        }"""
    )
    assert f"stream 7: {expected} in " in text
    page.locator(".canvas").focus()
    page.keyboard.press("Escape")
    wait_until_drawn(page)
    assert page.locator(".where").text_content().startswith("Step 11: ")


def test_the_address_has_the_view_and_opens_it(browser, path, page):
    zoom_in(page)
    page.wait_for_url(re.compile(r"#t=\d+-\d+$"))
    text, fragment = page.locator(".where").text_content(), page.url.partition("#")[2]
    with open_page(browser, path) as other:
        other.evaluate(f"location.hash = '{fragment}'")
        wait_until_drawn(other)
        assert other.locator(".where").text_content() == text


def test_a_finding_is_shown_where_it_is(page):
    page.get_by_role("button", name="Show in the timeline").first.click()
    wait_until_drawn(page)
    assert page.locator(".found-count").text_content().endswith("of 32")
    assert page.locator(".timeline .here").get_attribute("data-tip").startswith("decode_step\n")


def test_after_a_search_the_arrow_keys_go_on_from_what_is_shown(page):
    find = page.get_by_label("Search kernels, ranges and calls in the timeline")
    find.fill("sdpa")
    find.press("Enter")
    find.press("Escape")
    wait_until_drawn(page)
    before = page.locator(".timeline .here").get_attribute("data-tip")
    page.locator(".canvas").focus()
    page.keyboard.press("ArrowRight")
    wait_until_drawn(page)
    assert page.locator(".timeline .here").get_attribute("data-tip") != before
    assert page.locator(".where").text_content().startswith("Step 1")
    page.locator(".overview").press("End")
    page.locator(".canvas").focus()
    page.keyboard.press("ArrowRight")
    wait_until_drawn(page)
    assert page.locator(".where").text_content().startswith("Step 31")


def test_a_long_run_is_drawn_at_low_detail_where_it_has_no_events(browser, sample, tmp_path, monkeypatch):
    for module in ("windows", "timeline"):
        monkeypatch.setattr(f"nsys_insight.page.{module}.MAX_EVENTS", 3_000)
    monkeypatch.setattr("nsys_insight.page.timeline.LIMITS", Limits(3_000, 3_000, 3_000, 6_000, 6))
    with open_trace(sample("decode_eager")) as trace:
        outputs.write_output(tmp_path / "long.html", write_page(trace, "html"))
    with open_page(browser, tmp_path / "long.html") as page:
        page.get_by_role("button", name="Run", exact=True).click()
        wait_until_drawn(page)
        rough = page.locator(".timeline .rough")
        assert rough.count() > 100
        assert re.match(r".*: GPU busy \d+%, \d+ operations?\n", rough.first.get_attribute("data-tip"))
        assert page.evaluate("lines[0].data.rough.operations.reduce((a, b) => a + b)") == 6_537
        page.locator(".overview").press("End")
        wait_until_drawn(page)
        assert "--step 31 -o piece.html" in page.locator(".elsewhere code").text_content()


def test_sampled_metrics_are_tracks(browser, tmp_path):
    trace = Synthetic()
    trace.thread().kernel("work", start=1_000, runs=90_000)
    for name, values in (("SMs Active [Throughput %]", (40, 80, 80)), ("GPC Clock Frequency [MHz]", (1, 2, 3))):
        for index, percent in enumerate(values):
            trace.gpu_metric(name, time=10_000 + 20_000 * index, value=percent)
    with open_trace(trace.write(tmp_path / "metrics.sqlite")) as opened_trace, only_rules():
        outputs.write_output(tmp_path / "metrics.html", write_page(opened_trace, "html"))
    with open_page(browser, tmp_path / "metrics.html") as page:
        wait_until_drawn(page)
        assert page.locator("#timeline .names .metric").all_text_contents() == ["SMs Active"]
        heights = page.eval_on_selector_all(
            ".timeline rect.metric", "bars => bars.map(bar => bar.height.baseVal.value)"
        )
        assert heights == [pytest.approx(22 * 0.4, abs=0.1), pytest.approx(22 * 0.8, abs=0.1)]


def test_a_click_on_the_run_loads_a_step_or_a_gap(page):
    run, position_text = page.locator(".overview"), page.locator(".where")
    assert page.locator(".overview .a-step").count() == 33
    run.click(position={"x": run.bounding_box()["width"] - 3, "y": 54})
    wait_until_drawn(page)
    assert position_text.text_content() == "Step 31: 2.72 ms"
    run.press("ArrowLeft")
    assert page.locator("#said").text_content().startswith("Step 30: ")
    assert run.get_attribute("aria-valuetext").startswith("Step 30: ")
    page.get_by_role("button", name="Step before").click()
    wait_until_drawn(page)
    assert position_text.text_content().startswith("Step 29: ")
    page.locator(".overview .a-gap text").last.click()
    assert page.locator("#said").text_content().startswith("Gap of ")
    wait_until_drawn(page)
    assert page.locator(".timeline .idle .starved").count() >= 1
    run.press("Home")
    wait_until_drawn(page)
    assert position_text.text_content().startswith("Prefill: ")
    assert page.locator(".elsewhere").is_hidden()


def test_an_element_that_appears_under_a_resting_pointer_shows_no_tip(page):
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
    assert titles[2:] == ["Launch shapes, by time", "Call sites (median step)", "What bounds it"]
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


def test_the_shown_window_is_saved_for_perfetto(page):
    with page.expect_download() as download:
        page.get_by_role("button", name="Export for Perfetto").click()
    assert download.value.suggested_filename == "decode_eager-step-11.json"
    events = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))["traceEvents"]
    kinds = {event["cat"] for event in events if event["ph"] == "X"}
    assert kinds == {"nvtx", "host", "gpu", "idle", "step"}
    assert sum(event.get("cat") == "gpu" for event in events) == 198
    assert "ui.perfetto.dev" in page.locator(".where").text_content()


def test_a_command_is_copied(same_page):
    same_page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    code = same_page.locator("#top .more code")
    same_page.locator("#top .more .copy-it").click()
    same_page.locator("#top .more .copy-it", has_text="copied").wait_for()
    assert same_page.evaluate("navigator.clipboard.readText()") == code.text_content()


def test_search_marks_matches_and_steps_through_them(page):
    find = page.get_by_label("Search kernels, ranges and calls in the timeline")
    find.fill("sdpa attention")
    assert page.locator(".found-count").text_content() == "132 found"
    wait_until_drawn(page)
    assert 0 < page.locator(".timeline .found").count() < page.locator(".timeline .mark").count()
    find.press("Enter")
    wait_until_drawn(page)
    first = page.locator(".timeline .here").get_attribute("data-tip")
    assert "sdpa" in first
    find.press("Enter")
    wait_until_drawn(page)
    assert page.locator(".timeline .here").get_attribute("data-tip") != first
    assert page.locator(".found-count").text_content().endswith(" of 132")
    find.fill("no such thing")
    assert page.locator(".found-count").text_content() == "nothing found"
    find.press("Escape")
    wait_until_drawn(page)
    assert page.locator(".timeline .found").count() == 0


def test_a_focused_heading_explains_its_column(same_page):
    same_page.locator("#top th button").first.focus()
    same_page.keyboard.press("Tab")
    assert same_page.locator("#tip").text_content() == same_page.evaluate("document.activeElement.dataset.tip")
    same_page.keyboard.press("Escape")
    assert not same_page.locator("#tip").is_visible()


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (400, "dark"), *sweep([(1280, "dark"), (400, "light")])]
)
def test_it_fits_the_window_and_can_be_read(browser, path, width, scheme):
    with open_page(browser, path, color_scheme=scheme) as page:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("document.querySelectorAll('details.report').forEach(one => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(CONTRASTS) == []


# Finds texts with a contrast below 4.5, the minimum of WCAG 2.1 AA (https://www.w3.org/TR/WCAG21/#contrast-minimum).
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
    with open_page(browser, run_of_ranks, color_scheme=scheme) as page:
        page.set_viewport_size({"width": width, "height": 900})
        cells = page.locator("#rank-steps .lanes rect")
        assert cells.count() == 3 * 7, "of eight steps the first one has no collective before it"
        assert page.locator("#rank-steps .lanes rect.late").count() == 2
        late = page.locator("#rank-steps .lanes rect.late").first
        late.hover()
        assert page.locator("#tip").text_content().startswith("rank 1, step 3: ")
        assert "late by 8" in page.locator("#tip").text_content()
        assert page.locator("#rank-steps svg[role=img]").get_attribute("aria-label").endswith("late: rank 1 2 times")
        # Each rank has two kernels and two collectives. Two ranks wait for the third.
        assert page.locator("#rank-step .lanes rect.blocked").count() >= 2
        assert "AllReduce" in page.locator("#rank-skews li").first.text_content()
        assert "rank 1 last" in page.locator("#rank-skews li").first.text_content()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def run_of_ranks(tmp_path_factory):
    """Write the report of three ranks. The second rank is late in two steps."""
    folder = tmp_path_factory.mktemp("run")
    run = Run(3, steps=8)
    run.python[1] = {3: 8_000_000, 6: 8_000_000}
    with nsys_insight.open(run.write(folder), use_cache=False) as trace:
        outputs.write_output(folder / "report.html", write_page(trace, "html"))
    return folder / "report.html"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (400, "light")])
def test_two_runs_are_compared_on_one_scale(browser, comparison, width, scheme):
    path, headline = comparison
    with open_page(browser, path, color_scheme=scheme) as page:
        page.set_viewport_size({"width": width, "height": 900})
        wait_until_drawn(page)
        assert page.locator(".verdict").text_content() == headline
        assert page.locator("#tables details").count() >= 3
        assert page.locator(".timeline").count() == 2
        tick_labels = [box.locator(".tick").all_text_contents() for box in page.locator(".timeline").all()]
        assert tick_labels[0] == tick_labels[1] != []
        page.locator(".strip").first.get_by_role("button", name="Zoom in").click()
        wait_until_drawn(page)
        zoomed_labels = [box.locator(".tick").all_text_contents() for box in page.locator(".timeline").all()]
        assert zoomed_labels[0] == zoomed_labels[1] != tick_labels[0]
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(CONTRASTS) == []


@pytest.fixture(scope="module")
def comparison(sample, tmp_path_factory):
    """Write the page that compares a decoder with and without CUDA graphs. Return its path and its headline."""
    target = tmp_path_factory.mktemp("compared") / "compared.html"
    with open_trace(sample("decode_eager")) as before, open_trace(sample("decode_graph_node")) as after:
        outputs.write_output(target, compare_page.render_comparison(before, after, AUTO))
        runs = [[measure(trace)] for trace in (before, after)]
    return target, describe_decision(compare(*runs))


@pytest.mark.parametrize(("theme", "system"), [("light", "dark"), ("dark", "light")])
def test_a_table_in_a_notebook_has_the_colors_of_the_theme_of_jupyterlab(browser, theme, system):
    """The theme differs from the system's, and JupyterLab colors the rows of a table."""
    html = add_style("<table><thead><tr><th>name</th></tr></thead></table>")
    page = browser.new_page(color_scheme=system)
    page.set_content(f"<!doctype html><body data-jp-theme-light={'true' if theme == 'light' else 'false'}>{html}")
    text, background = page.eval_on_selector(
        "th", "cell => [getComputedStyle(cell).color, getComputedStyle(cell).backgroundColor]"
    )
    brightness = [sum(map(int, re.findall(r"\d+", color))) for color in (text, background)]
    assert (brightness[1] - brightness[0] > 400) == (theme == "light")
    assert (brightness[0] - brightness[1] > 400) == (theme == "dark")
    page.close()


def test_a_list_of_a_notebook_is_not_indented_by_jupyterlab(browser):
    page = browser.new_page()
    jupyterlab = "<style>.lab ul:not(.list-inline) { padding-left: 2em } .lab table { margin-bottom: 1em }</style>"
    page.set_content(f"{jupyterlab}<div class=lab>{add_style('<ul class=facts><li>a</li></ul><table></table>')}</div>")
    assert page.eval_on_selector("ul", "list => getComputedStyle(list).paddingLeft") == "0px"
    assert page.eval_on_selector("table", "table => getComputedStyle(table).marginBottom") == "0px"
    page.close()


def test_a_picture_in_a_notebook_fits_a_narrow_cell_and_has_tips(browser, sample):
    page = browser.new_page()
    with open_trace(sample("decode_eager")) as trace:
        page.set_content(f"<div style='width: 700px'>{trace.timeline(step=5)._repr_html_()}</div>")
    svg, *labels = page.eval_on_selector_all(
        "svg, svg text", "all => all.map(part => part.getBoundingClientRect()).map(box => [box.left, box.right])"
    )
    assert svg[1] - svg[0] <= 700
    assert [label for label in labels if not svg[0] <= label[0] <= label[1] <= svg[1]] == []
    assert page.locator("rect title").count() > 100
    page.close()
