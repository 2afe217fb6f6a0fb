"""The report file: its numbers are those of the single reports, its pictures are correct, and it needs no network."""

from __future__ import annotations

import base64
import hashlib
import lzma
import math
import re
import sqlite3
import subprocess
import sys
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import cache
from html import escape as html_escape
from html.parser import HTMLParser
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median

import command_line
import many_traces
import planted as plans
import pytest
from kept_connections import keep_connections
from markdown_it import MarkdownIt
from opening import only_rules, open_trace, planted_path
from real_traces import SAMPLE_NAMES
from sweeps import sweep
from synthetic import Trace

import nsys_insight
from nsys_insight import outputs
from nsys_insight.diagnose.brief_operations import merge_operations
from nsys_insight.diagnose.text import write_headline
from nsys_insight.errors import UsageError
from nsys_insight.packs import library
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.page import (
    cards,
    choose_kind,
    content,
    flame,
    html,
    markdown,
    pictures,
    styles,
    tracks,
    windows,
    write_page,
)
from nsys_insight.page import layer as layers
from nsys_insight.page import timeline as timelines
from nsys_insight.page.queries import ask

REPOSITORY = Path(__file__).parents[1]
HOSTILE = [
    "void evil<script>alert(1)</script>(float *)",
    '" onmouseover="alert(2)" x=\'',
    "</style></svg></details><img src=x onerror=alert(3)>",
    "{{ 7 * 7 }}{% raw %}",
    "a|b`c``d\n# e <b>f</b> [g](http://h) \x1b[31m \u202e",
    b"caf\xe9 \xff\xfe(float *)",
]
# Rules whose findings name kernels, calls and ranges, and none where nothing is found.
RULES_OF_PAGES = {
    "hostile": ("launch-bound", "d2h-sync", "hot-kernels", "stall-place", "fusion", "graph-candidate"),
    "everything": ("launch-bound", "hot-kernels", "copy-bound"),
    "nothing": (),
    "kernels only": (),
}
# Reports that need flags of their own, or that are about one kernel.
ELSEWHERE = {
    "peaks",
    "step-operations",
    "step-calls",
    "classify-steps",
    "loop-iteration",
    "fusion-candidate",
    "nvtx-instances",
    "overlap",
    "ranks",
    "collectives",
    "mpi",
    "openacc",
    "openmp",
    "libraries",
    "files",
    "gpu-contexts",
    "metrics",
}


class Page(HTMLParser):
    """Parse a page: its elements with their attributes, and its text."""

    VOID = frozenset({"meta", "link", "input", "img", "br"})

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open, self.raw = [], [], [], {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("style", "script"):
            kind = "data" if self.elements[-1][1].get("type") == "application/json" else self.open[-1]
            self.raw[kind] = self.raw.get(kind, "") + data
        else:
            self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def same_cell(left, right):
    """Compare two cells. Sums of floats depend on the order of adding, in the last digits."""
    return left == right or (
        isinstance(left, float) and isinstance(right, float) and math.isclose(left, right, rel_tol=1e-9)
    )


def write_hostile_trace(path):
    """Write a trace of a decoder whose kernels and ranges have hostile names."""
    trace = Trace()
    host = trace.thread(name=b"thr\xe9ad <i>")
    for _ in range(6):
        with host.nvtx(HOSTILE[0]), host.nvtx(HOSTILE[4]):
            for name in HOSTILE:
                host.launch(name, runs=2_000)
            host.copy("D2H", 8).sync("stream")
    return trace.write(path)


def unpack_clinic(name, folder):
    packed = REPOSITORY / "benchmarks" / "clinic" / "traces" / f"{name}.sqlite.xz"
    path = folder / f"{name}.sqlite"
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return path


@pytest.fixture(scope="module")
def open_by_name(tmp_path_factory):
    """Return a function that opens a trace by its name, once."""
    folder, opened_traces = tmp_path_factory.mktemp("pages"), {}
    makers = {
        "hostile": lambda: write_hostile_trace(folder / "<b>hostile & co.sqlite"),
        "nothing": lambda: Trace().write(folder / "nothing.sqlite"),
        "kernels only": lambda: many_traces.kernels_only().write(folder / "kernels.sqlite"),
        "everything": lambda: many_traces.make_full_trace().write(folder / "everything.sqlite"),
        "lm_head": lambda: unpack_clinic("lm_head_ailing", folder),
    }

    def make(name):
        if name not in opened_traces:
            path = makers[name]() if name in makers else REPOSITORY / "sample_traces" / f"{name}.sqlite"
            with nullcontext() if name in makers else keep_connections():
                opened_traces[name] = nsys_insight.open(path)
        return opened_traces[name]

    yield make
    for trace in opened_traces.values():
        trace.close()


@pytest.fixture(scope="module")
def gather_by_name(open_by_name):
    """Return a function that gathers the content of a trace, once."""

    def gather(name):
        # The findings of all rules are on the pages of samples.
        with only_rules(*RULES_OF_PAGES[name]) if name in RULES_OF_PAGES else nullcontext():
            return content.gather(open_by_name(name), AUTO)

    return cache(gather)


@pytest.fixture(scope="module")
def render_by_name(open_by_name, gather_by_name):
    """Return a function that writes the report about a trace, in one format."""

    def make(name, kind="html"):
        if kind == "html":
            trace, page_content = open_by_name(name), gather_by_name(name)
            return html.render_page(page_content, html.draw(trace, AUTO, page_content))
        return markdown.write_report(gather_by_name(name))

    return cache(make)


class TestContent:
    def test_it_has_every_report_once(self):
        names = [pack.name for packs in library.packs_by_topic().values() for pack in packs if pack.page]
        assert len(names) == len(set(names))
        assert set(names) | ELSEWHERE == set(library.built_in_packs())

    @pytest.mark.slow
    def test_the_numbers_are_those_of_the_reports(self, open_by_name, gather_by_name):
        for name, entry in gather_by_name("churn").reports.items():
            for row, other in zip(entry.answer.rows(), open_by_name("churn").answer(name).rows(), strict=True):
                assert all(map(same_cell, row, other)), (name, row, other)

    @pytest.mark.slow
    def test_step_options_reach_the_figures_and_commands(self, sample):
        with open_trace(sample("decode_eager")) as trace:
            page_content = content.gather(trace, StepOptions(tokens=64))
            figures = {figure.label: figure.text for figure in page_content.figures}
            (wall,) = (row[1] for row in trace.answer("per-token", tokens=64).rows() if row[0] == "wall_ns")
        assert figures["step time"] == f"{wall / 1e6:.2f} ms"
        assert page_content.build_command("per-token").endswith("--tokens 64")
        assert page_content.build_command("top").endswith("decode_eager.sqlite")

    def test_the_timeline_is_before_the_findings_whose_evidence_is_folded(self, render_by_name):
        page = render_by_name("churn")
        assert 0 < page.index('<section id="timeline">') < page.index('<section id="findings">')
        finding = page.partition('<li class="finding')[2].partition("</li>")[0]
        assert finding.index("<b>Fix</b>") < finding.index("<details>") < finding.index("<b>Skip if</b>")

    def test_the_brief_is_below_the_verdict(self, render_by_name, gather_by_name):
        page = render_by_name("churn")
        assert page.index('<section id="diagnosis">') < page.index('<section id="run-in-brief">')
        brief = page.partition('<section id="run-in-brief">')[2].partition("</section>")[0]
        assert "<section" not in page.partition("</section>")[2].partition('<section id="run-in-brief">')[0]
        names = [operation.name for operation in merge_operations(gather_by_name("churn").brief.operations)]
        assert brief.count("<tr>") > min(len(names), 8)
        assert "API calls of" in brief

    @pytest.mark.parametrize("kind", ["html", "markdown"])
    def test_commands_name_the_file_without_the_folders_of_the_author(self, kind, render_by_name):
        report = render_by_name("churn", kind)
        assert "nsys-insight copies churn.sqlite" in report
        assert str(REPOSITORY) not in report

    @pytest.mark.parametrize("verdict", ["GPU-bound", "host-bound"])
    def test_the_headline_is_that_of_the_terminal(self, verdict, gather_by_name):
        entry = gather_by_name("churn")
        entry = replace(entry, brief=replace(entry.brief, diagnosis=replace(entry.diagnosis, verdict=verdict)))
        description = html.describe_diagnosis(entry.diagnosis, entry)
        wall, *other_lines = description["lines"]
        assert [f"churn.sqlite: {description['verdict']}; {wall}", *other_lines] == write_headline(entry.diagnosis)

    def test_a_report_that_fails_shows_its_error(self, sample, monkeypatch):
        with nsys_insight.open(sample("churn")) as trace:
            answer = trace.answer

            def failing(report, **params):
                if getattr(report, "name", report) == "streams":
                    raise UsageError("no", "")
                return answer(report, **params)

            monkeypatch.setattr(trace, "answer", failing)
            entry = content._answer_report(trace, library.built_in_packs()["streams"], {}, None)
        assert (entry.is_empty, entry.answer.empty) == (True, "no")

    def test_prose_names_columns_as_tables_do(self):
        text = "gpu_idle_ns can be saved; see kernel_avg_ns, h2d_bytes, tokens_per_s and --min-gap."
        assert content.label_columns(text) == "gpu idle can be saved; see kernel avg, h2d, tokens/s and --min-gap."

    def test_the_first_sentences_of_a_reading(self):
        assert content.take_sentences("One: a b. Two. Three.", 2) == "One: a b. Two."
        assert content.take_sentences("Only one.", 2) == "Only one."
        for pack in library.built_in_packs().values():
            assert pack.reading.startswith(content.take_sentences(pack.reading, 2))


class TestStill:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "name", ["launch bound", "sync bound", "allocating", "profiled", "dependent", "two streams"]
    )
    def test_its_gaps_are_the_planted_gaps(self, name):
        planted = plans.ALL[name]()
        with open_trace(planted_path(name)) as trace:
            still = timelines.draw_still(trace, AUTO)
        step = planted.steps[still.step]
        assert (still.window.start_ns, still.window.end_ns) == (step.start_ns, step.end_ns)
        expected_idle_ns = {}
        for gap in planted.gaps:
            overlap_ns = min(gap.end_ns, step.end_ns) - max(gap.start_ns, step.start_ns)
            if overlap_ns > 0:
                expected_idle_ns[gap.cause] = expected_idle_ns.get(gap.cause, 0) + overlap_ns
        assert still.view.idle_ns == expected_idle_ns

    @pytest.mark.slow
    @pytest.mark.parametrize("name", SAMPLE_NAMES)
    def test_its_idle_time_is_that_of_step_idle_and_its_step_is_nearest_to_the_median(self, name, open_by_name):
        trace = open_by_name(name)
        still = timelines.draw_still(trace, AUTO)
        idle = dict(
            trace.rows(
                f"SELECT cause, sum(idle_ns)::BIGINT AS idle_ns FROM step_idle WHERE step = {still.step} GROUP BY 1"
            )
        )
        walls = dict(trace.rows("SELECT step, duration_ns FROM steps WHERE phase = 'steady' AND NOT is_outlier"))
        assert still.view.idle_ns == idle
        middle = median(walls.values())
        assert abs(walls[still.step] - middle) == min(abs(wall - middle) for wall in walls.values())

    def test_every_operation_and_call_of_the_step_is_in_it(self, open_by_name):
        trace = open_by_name("decode_eager")
        still = timelines.draw_still(trace, AUTO)
        from_ns, to_ns = still.window
        operations = trace.rows("SELECT start_ns, end_ns FROM gpu_ops")
        calls = trace.rows("SELECT start_ns, end_ns FROM api_calls")
        for kind, events in (("gpu", operations), ("host", calls)):
            (track,) = (track for track in still.view.tracks if track.kind == kind)
            starts = [start for start, end in events if start < to_ns and end > from_ns]
            positions = sorted(100 * (max(start, from_ns) - from_ns) / (to_ns - from_ns) for start in starts)
            assert [bar.left for bar in still.draw_bars(track)] == pytest.approx(positions, abs=0.07)
        assert [track.name for track in still.view.tracks] == ["NVTX", "", "calls", "stream 7", "GPU idle"]

    @pytest.mark.parametrize("name", SAMPLE_NAMES)
    def test_all_bars_are_inside_and_have_a_legend(self, name, open_by_name):
        still = timelines.draw_still(open_by_name(name), AUTO)
        for track in still.view.tracks:
            assert still.draw_bars(track)
            for bar in still.draw_bars(track):
                assert 0 <= bar.left < bar.left + bar.width <= 100 + 1e-6
                assert bar.style in styles.LEGEND
                assert bar.tip.startswith(bar.label)
        positions = [position for position, _ in still.ticks]
        assert positions == sorted(set(positions))
        assert 4 <= len(positions) <= 10
        assert positions[0] == 0
        assert positions[-1] < 100

    def test_long_tracks_are_cut_and_the_omissions_are_listed(self, open_by_name, monkeypatch):
        full_still = timelines.draw_still(open_by_name("decode_eager"), AUTO)
        monkeypatch.setattr(timelines, "STILL_LIMITS", tracks.Limits(50, 20, 10, 300, 3))
        limited_still = timelines.draw_still(open_by_name("decode_eager"), AUTO)
        assert (full_still.view.omissions, len(limited_still.view.omissions)) == ([], 3)
        counts = {track.kind: len(track.events) for track in limited_still.view.tracks}
        assert (counts["gpu"], counts["host"], counts["idle"]) == (50, 20, 10)
        assert (
            limited_still.window.start_ns
            == full_still.window.start_ns
            < limited_still.window.end_ns
            < full_still.window.end_ns
        )
        assert limited_still.view.omissions[0].endswith("50 operations")

    @pytest.mark.slow
    def test_without_steps_it_shows_the_full_trace(self, tmp_path):
        trace = Trace()
        trace.thread().launch("a", runs=1_000).idle(10_000).launch("b", runs=3_000)
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
            still = timelines.draw_still(opened_trace, AUTO)
            operations = opened_trace.rows("SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM gpu_ops")
        assert (still.step, [(still.window.start_ns, still.window.end_ns)]) == (None, operations)

    @pytest.mark.parametrize("name", ["nothing", "calls only"])
    def test_without_gpu_work_nothing_is_drawn(self, name, tmp_path):
        bare = Trace() if name == "nothing" else many_traces.calls_only()
        with open_trace(bare.write(tmp_path / "trace.sqlite")) as trace:
            assert timelines.draw_still(trace, AUTO) is None
            assert layers.draw_layer(trace, AUTO) is None


class TestTimeline:
    def test_its_contents_are_the_loops_each_with_a_usual_iteration(self, open_by_name):
        trace = open_by_name("decode_eager")
        timeline = timelines.build_timeline(trace, AUTO)
        loops = {row.loop: row for row in trace.rows("SELECT loop, depth, period_ns FROM loops")}
        assert [(entry.loop, entry.depth) for entry in timeline.contents] == [
            (loop, row.depth) for loop, row in sorted(loops.items())
        ]
        for entry in timeline.contents:
            start, end = entry.window
            assert end - start == pytest.approx(loops[entry.loop].period_ns, rel=0.05)

    @pytest.mark.slow
    def test_it_has_all_events_of_a_small_run(self, open_by_name):
        trace = open_by_name("decode_eager")
        timeline = timelines.build_timeline(trace, AUTO)
        data = timeline.data
        assert data["windows"] == [[0, data["ns"]]]
        assert (timeline.step, timeline.view.omissions) == (timelines.draw_still(trace, AUTO).step, [])
        for kind, view in (("gpu", "gpu_ops"), ("host", "outer_api_calls")):
            (lane,) = (lane for lane in data["lanes"] if lane["kind"] == kind)
            starts = [data["origin"] + start for start in accumulate(lane["at"])]
            ends = [start + duration for start, duration in zip(starts, lane["lasts"], strict=True)]
            expected_times = trace.rows(f"SELECT start_ns, end_ns FROM {view} ORDER BY 1, 2")
            assert list(zip(starts, ends, strict=True)) == expected_times
        idle = data["lanes"][-1]
        assert sum(idle["lasts"]) == trace.rows("SELECT sum(idle_ns)::BIGINT AS ns FROM gpu_idle")[0].ns
        for index, part_times in idle["parts"].items():
            assert sum(part_times) == idle["lasts"][index]
            assert len(part_times) == len(data["things"][idle["what"][index]]) - 4
        steps = trace.rows("SELECT step, start_ns, duration_ns, gpu_busy_ns FROM steps ORDER BY start_ns")
        assert [(step, data["origin"] + start, wall, busy) for step, _, start, wall, busy, _ in data["steps"]] == steps
        busy = data["busy"]
        (wall,) = trace.rows("SELECT duration_ns, (SELECT sum(busy_ns) FROM used_gpus) AS busy_ns FROM wall")
        assert sum(busy["pct"]) / 100 * busy["each"] == pytest.approx(wall.busy_ns, rel=0.02)

    def test_the_size_of_a_window_counts_the_operations_and_calls_that_overlap_it(self, sample):
        with nsys_insight.open(sample("churn")) as trace:
            events = trace.rows(
                "SELECT start_ns, end_ns FROM gpu_ops UNION ALL FROM (SELECT start_ns, end_ns FROM outer_api_calls)"
            )
            edges = sorted(
                {edge for event in events[::40] for edge in (event.start_ns, event.end_ns, event.end_ns + 1)}
            )
            pairs = [(edges[0] - 9, edges[0] - 3), *zip(edges, edges[3:], strict=False), (edges[0], edges[-1] + 9)]
            starts, ends = ([pair[side] for pair in pairs] for side in (0, 1))
            window_sizes = {
                row.window_index: row.events for row in ask(trace, "window_sizes", AUTO, starts=starts, ends=ends)
            }
        for index, (start, end) in enumerate(pairs):
            assert window_sizes.get(index, 0) == sum(event.start_ns < end and event.end_ns > start for event in events)
        assert len(window_sizes) < len(pairs)

    @pytest.mark.slow
    def test_of_a_long_run_it_has_the_outliers(self, tmp_path, monkeypatch):
        monkeypatch.setattr(windows, "MAX_EVENTS", 60)
        with open_trace(plans.straggling().write(tmp_path / "trace.sqlite")) as trace:
            timeline = timelines.build_timeline(trace, AUTO, trace.answer("gaps").dicts(1))
            outliers = trace.rows("SELECT start_ns, end_ns FROM steps WHERE is_outlier")
            count = len(trace.rows("FROM steps"))
        shown_windows = [
            (timeline.data["origin"] + start, timeline.data["origin"] + end) for start, end in timeline.data["windows"]
        ]
        assert all(
            any(start <= outlier.start_ns and outlier.end_ns <= end for start, end in shown_windows)
            for outlier in outliers
        )
        assert any(start <= timeline.first.start_ns and timeline.first.end_ns <= end for start, end in shown_windows)
        assert 1 < len(shown_windows) < count
        for lane in timeline.data["lanes"]:
            for start, duration in zip(accumulate(lane["at"]), lane["lasts"], strict=True):
                assert any(
                    start < window_end and start + duration > window_start
                    for window_start, window_end in timeline.data["windows"]
                ), lane["kind"]

    def test_an_empty_trace_has_no_timeline(self, tmp_path):
        with open_trace(Trace().write(tmp_path / "trace.sqlite")) as trace:
            assert timelines.build_timeline(trace, AUTO) is None

    def test_tracks_are_as_tall_as_their_name_labels(self):
        css = (html._TEMPLATES / "page.css").read_text()
        heights = dict(re.findall(r"\.names \.(\w+) \{ height: (\d+)px", css))
        assert {kind: int(heights[kind]) for kind in tracks.HEIGHTS} == tracks.HEIGHTS
        assert int(heights["axis"]) == tracks.SCALE_HEIGHT
        assert f"margin-bottom: {tracks.GAP}px; text-overflow" in css


class TestCards:
    @pytest.mark.slow
    def test_a_card_agrees_with_the_launches_of_its_kernel(self, open_by_name):
        trace = open_by_name("decode_eager")
        timeline = timelines.build_timeline(trace, AUTO)
        kernel_cards = cards.make_cards(
            trace, AUTO, timeline.first, {"classify-kernels": trace.answer("classify-kernels")}
        )
        assert [card["key"] for card in kernel_cards.values()] == [row["name"] for row in trace.answer("top").dicts()]
        assert set(timeline.kernels) == set(kernel_cards)
        kernel, card = next(iter(kernel_cards.items()))
        launches = trace.rows(
            f"SELECT start_ns, duration_ns FROM kernel_events WHERE name_id = {kernel} ORDER BY start_ns"
        )
        durations = [row.duration_ns for row in launches]
        assert (card["least"], card["most"]) == (min(durations), max(durations))
        ratio = max(durations) / min(durations)
        counts = dict.fromkeys(range(cards.BINS), 0)
        for ns in durations:
            counts[min(int(cards.BINS * math.log(ns / min(durations)) / math.log(ratio)), cards.BINS - 1)] += 1
        assert {bin_index: calls for bin_index, calls in counts.items() if calls} == dict(card["bins"])
        by_step = trace.rows(f"SELECT step, kernel_ns, calls FROM step_kernels WHERE name_id = {kernel} ORDER BY 1")
        assert [tuple(step) for step in card["steps"]] == [
            (row.step, row.step, row.kernel_ns, row.calls) for row in by_step
        ]
        assert [shape[2] for shape in card["shapes"]] == [f"{len(durations):,}"]
        starts = [row.start_ns for row in launches if timeline.first.start_ns <= row.start_ns < timeline.first.end_ns]
        assert [place[:2] for place in card["places"]] == [["decode_step/layer_#", len(starts)]]
        assert card["bound"][0][2] == "latency"

    @pytest.mark.slow
    def test_many_steps_share_columns_and_a_kernel_of_one_duration_has_one_bin(self, tmp_path, monkeypatch):
        monkeypatch.setattr(cards, "MAX_STEP_COLUMNS", 4)
        trace = Trace()
        host = trace.thread()
        for _ in range(12):
            with host.nvtx("step"):
                host.launch("even", runs=2_000).launch("other", runs=1_000).sync("stream")
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
            timeline = timelines.build_timeline(opened_trace, AUTO)
            even, _ = cards.make_cards(opened_trace, AUTO, timeline.first, {}).values()
        assert (even["bins"], even["least"], even["most"]) == ([[0, 12]], 2_000, 2_000)
        assert len(even["steps"]) == 4
        assert {(ns, calls) for _, _, ns, calls in even["steps"]} == {(2_000, 1)}
        assert even["bound"] == even["ncu"] == []


class TestIcicle:
    def test_ranges_stand_below_their_parents_and_are_as_wide_as_their_time(self, open_by_name):
        trace = open_by_name("decode_eager")
        root, outer, inner = flame.draw_icicle(trace, AUTO).rows
        paths = trace.rows("SELECT path, sum(duration_ns)::BIGINT AS ns FROM nvtx_nesting GROUP BY 1")
        top = {row.path: row.ns for row in paths if "/" not in row.path}
        assert [bar.width for bar in root] == [100]
        assert {bar.label: bar.width for bar in outer} == pytest.approx(
            {name: 100 * ns / sum(top.values()) for name, ns in top.items()}
        )
        layers_ns = sum(row.ns for row in paths if row.path.startswith("decode_step/"))
        (layers_,) = (bar for bar in inner if bar.left == outer[0].left)
        assert (layers_.label, layers_.width) == ("layer_#", pytest.approx(100 * layers_ns / sum(top.values())))
        assert "128 times" in layers_.tip

    def test_a_range_without_end_is_as_long_as_its_content(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        with host.nvtx("outer"), host.nvtx("inner"):
            host.launch("k", runs=5_000).sync("stream")
        path = trace.write(tmp_path / "trace.sqlite")
        with closing(sqlite3.connect(path)) as file_, file_:
            file_.execute("UPDATE NVTX_EVENTS SET \"end\" = NULL WHERE text = 'outer'")
        with open_trace(path) as opened_trace:
            root, outer, inner = flame.draw_icicle(opened_trace, AUTO).rows
        assert [(bars[0].label.partition(":")[0], bars[0].width) for bars in (root, outer, inner)] == [
            ("NVTX ranges", 100), ("outer", 100), ("inner", 100),
        ]  # fmt: skip

    def test_ranges_without_nesting_have_no_icicle(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        with host.nvtx("a"):
            host.launch("k")
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
            assert flame.draw_icicle(opened_trace, AUTO) is None


class TestPictures:
    @pytest.mark.parametrize("name", SAMPLE_NAMES)
    @pytest.mark.parametrize(("report", "draw"), [("idle", pictures.draw_idle), ("classify", pictures.draw_budget)])
    def test_a_stack_adds_up_to_the_wall_time(self, name, report, draw, open_by_name):
        (stack,) = draw(open_by_name(name).answer(report))
        assert sum(part.width for part in stack.bars) == pytest.approx(100)
        for bar, next_bar in pairwise(stack.bars):
            assert bar.left + bar.width == pytest.approx(next_bar.left)
        assert {part.style for part in stack.bars} <= set(styles.LEGEND)

    def test_bars_of_the_top_kernels_are_relative_to_the_first(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for name, runs in (("gemm", 8_000), ("norm", 4_000), ("norm", 2_000), ("copy", 1_000)):
            host.launch(name, runs=runs)
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
            bars = pictures.draw_top(opened_trace.answer("top"))
        assert [(bar.label, bar.width) for bar in bars] == [("gemm", 100), ("norm", 75), ("copy", 12.5)]

    def test_a_column_is_a_step(self):
        with open_trace(planted_path("straggling")) as trace:
            pace = pictures.draw_pace(trace.answer("steps"))
            steady_steps = [row for row in trace.steps().to_dicts() if row["phase"] == "steady"]
        walls = [row["duration_ns"] for row in steady_steps]
        assert [column.busy + column.idle for column in pace.columns] == pytest.approx(
            [100 * wall / max(walls) for wall in walls]
        )
        assert [column.busy for column in pace.columns] == pytest.approx(
            [100 * row["gpu_busy_ns"] / max(walls) for row in steady_steps]
        )
        assert [number for number, column in enumerate(pace.columns) if column.is_outlier] == [7]

    @pytest.mark.slow
    def test_many_steps_share_columns(self, tmp_path, monkeypatch):
        monkeypatch.setattr(pictures, "MAX_COLUMNS", 5)
        with open_trace(plans.straggling().write(tmp_path / "trace.sqlite")) as trace:
            pace = pictures.draw_pace(trace.answer("steps"))
            steady_steps = [row for row in trace.steps().to_dicts() if row["phase"] == "steady"]
        assert pace.per_column == 3
        assert len(pace.columns) == -(-len(steady_steps) // 3) <= 5
        assert [column.is_outlier for column in pace.columns].index(True) == 7 // 3

    def test_one_step_has_no_pace(self, tmp_path):
        with open_trace(Trace().write(tmp_path / "trace.sqlite")) as trace:
            assert pictures.draw_pace(trace.answer("steps")) is None


class TestLayer:
    def test_chains_stand_where_their_kernels_are(self, open_by_name):
        trace = open_by_name("decode_eager")
        layer = layers.draw_layer(trace, AUTO)
        candidates = {row["candidate"]: row for row in trace.fusion().to_dicts()}
        words = {}
        for candidate, operation, role in trace.rows(
            "SELECT candidate, operation, role FROM fusion_kernels ORDER BY candidate, position"
        ):
            words.setdefault(candidate, []).append((operation, role == "fused"))
        assert (len(layer.kernels), layer.layers, layer.is_cut) == (45, 4, False)
        assert max(kernel.height for kernel in layer.kernels) == 100
        assert sum(len(row) for row in layer.rows) > 5
        for row in layer.rows:
            for chain in row:
                expected_words = words[chain.candidate]
                assert candidates[chain.candidate]["verdict"] == "YES"
                assert chain.is_chosen == candidates[chain.candidate]["chosen"]
                assert [kernel.word for kernel in layer.kernels[chain.first : chain.last + 1]] == [
                    word for word, _ in expected_words
                ]
                assert chain.fused == {
                    chain.first + offset for offset, (_, fused) in enumerate(expected_words) if fused
                }
        is_chosen = [chain.is_chosen for row in layer.rows for chain in row[:1]]
        assert is_chosen == sorted(is_chosen, reverse=True)

    def test_chosen_chains_share_no_kernel(self, open_by_name):
        layer = layers.draw_layer(open_by_name("decode_eager"), AUTO)
        fused_kernels = [kernel for row in layer.rows for chain in row if chain.is_chosen for kernel in chain.fused]
        assert len(fused_kernels) == len(set(fused_kernels)) > 20


TRACE_NAMES = ["churn", "hostile", "nothing", *sweep(["kernels only"]), "everything"]


class TestHtml:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", TRACE_NAMES)
    def test_it_is_well_formed_and_needs_no_other_files(self, name, render_by_name):
        page = Page(render_by_name(name))
        assert page.open == []
        for tag, attributes in page.elements:
            for attribute, value in attributes.items():
                assert not attribute.startswith("on"), (tag, attribute)
                assert attribute not in ("style", "src", "srcset", "action"), (tag, attribute)
                if attribute == "href":
                    assert value.startswith("#") or value == "data:,"
        assert not {"iframe", "img", "object", "embed", "form", "base"} & {tag for tag, _ in page.elements}
        assert "about-ranks" not in {attributes.get("id") for _, attributes in page.elements}, "there is one rank"

    @pytest.mark.parametrize("name", ["churn", "hostile"])
    def test_only_its_own_style_and_script_may_run(self, name, render_by_name):
        page = Page(render_by_name(name))
        assert (len(page.all("style")), [script.get("type") for script in page.all("script")]) == (
            1,
            ["application/json", None],
        )
        (policy,) = (
            meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"
        )
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert (rules["default-src"], rules["base-uri"], rules["form-action"]) == ("'none'", "'none'", "'none'")
        for element in ("style", "script"):
            digest = base64.b64encode(hashlib.sha256(page.raw[element].encode()).digest()).decode()
            assert rules[f"{element}-src"] == f"'sha256-{digest}'"
        assert (
            page.raw["script"].replace("http://www.w3.org/2000/svg", "").count("http")
            == 0
            == page.raw["style"].count("http")
        )

    def test_hostile_names_are_plain_text(self, render_by_name):
        page = Page(render_by_name("hostile"))
        assert "void evil<script>alert(1)</script>(float *)" in page.text
        assert "<img src=x onerror=alert(3)>" in page.text
        assert "{{ 7 * 7 }}" in page.text
        assert "\x1b" not in render_by_name("hostile")
        assert "\u202e" not in render_by_name("hostile")
        assert "<b>hostile & co.sqlite" in page.text

    @pytest.mark.parametrize("name", TRACE_NAMES)
    def test_ids_are_unique_and_links_lead_somewhere(self, name, render_by_name):
        page = Page(render_by_name(name))
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        assert {link["href"][1:] for link in page.all("a")} <= set(ids)

    def test_every_cell_has_its_column_and_every_number_its_raw_value(self, open_by_name, render_by_name):
        answer = open_by_name("churn").answer("top")
        table = render_by_name("churn").partition('<details class="report" id="top"')[2].partition("</table>")[0]
        rows = [
            Page(f"<table>{row}").all("td")
            for row in re.findall(r"<tr>.*?</tr>", table.partition("<tbody>")[2], re.DOTALL)
        ]
        assert len(rows) == answer.row_count
        column_index = [column.name for column in answer.columns].index("total_ns")
        assert [int(cells[column_index]["data-v"]) for cells in rows] == [row[column_index] for row in answer.rows()]
        assert all(len(cells) == len(answer.columns) for cells in rows)

    def test_long_tables_are_cut_and_say_so(self, gather_by_name):
        page_content = gather_by_name("churn")
        text = html.render_page(page_content, html.Drawings(), limit=7)
        gaps = text.partition('id="gaps"')[2].partition("</details>\n</details>")[0]
        assert gaps.count("<tr>") == 1 + 7
        assert f"7 of {page_content.reports['gaps'].answer.row_count} rows are here" in gaps

    @pytest.mark.slow
    def test_a_trace_of_the_longest_names_stays_small(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for step in range(3):
            with host.nvtx("step"):
                for number in range(200):
                    host.launch(f"void kernel_{number}<{'very_long_name, ' * 150}{step}>(float *)", runs=1_000).idle(
                        500
                    )
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
            assert len(write_page(opened_trace, "html").encode()) < 3_000_000

    @pytest.mark.slow
    def test_it_has_the_ncu_metrics(self, sample, tmp_path):
        data = sorted((REPOSITORY / "tests" / "data" / "ncu").glob("churn.ncu.*.csv"))
        with nsys_insight.open(sample("churn"), ncu=_import_ncu(data, tmp_path)) as trace:
            page_content = content.gather(trace, AUTO)
            findings = page_content.ncu_answer.rows()
            page = html.render_page(page_content, html.Drawings())
            assert [finding[0] for finding in findings]
            assert all(html_escape(finding[0]) in page.partition('id="ncu"')[2] for finding in findings)
            assert 'id="headroom"' in page
            assert "### What the Nsight Compute metrics show" in markdown.write_report(page_content)

    @pytest.mark.slow
    def test_the_roofline_is_drawn_where_sizes_are_given(self, tmp_path):
        trace = Trace()
        trace.thread().launch("hgemm_nn", runs=1_000_000)
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
            page = write_page(opened_trace, "html", sizes={"gemm": "4096,4096,1024"})
        assert "flop/byte" in page.partition('id="roofline-picture"')[2].partition("</figure>")[0]


def _import_ncu(files, folder):
    from nsys_insight.ingest.ncu import store

    target = folder / "data.ncu.duckdb"
    store.write(store.read_all(list(files)), target, None)
    return target


class TestMarkdown:
    @pytest.mark.parametrize("name", TRACE_NAMES)
    def test_it_is_headings_tables_and_text(self, name, render_by_name):
        tokens = MarkdownIt("commonmark").enable("table").parse(render_by_name(name, "markdown"))
        tags = [tag for token in tokens if token.type == "html_block" for tag in re.findall(r"</?\w+", token.content)]
        assert set(tags) <= {"<details", "</details", "<summary", "</summary"}
        assert tags.count("<details") == tags.count("</details") == tags.count("<summary")
        inline = [child for token in tokens for child in token.children or ()]
        assert not [child for child in inline if child.type in ("html_inline", "image", "link_open")]

    def test_it_has_a_table_for_each_report(self, gather_by_name, render_by_name):
        tokens = MarkdownIt("commonmark").enable("table").parse(render_by_name("churn", "markdown"))
        nonempty = [entry for entry in gather_by_name("churn").reports.values() if not entry.is_empty]
        assert sum(token.type == "table_open" for token in tokens) == len(nonempty) + 1  # and the figures
        headings = [
            tokens[index + 1].content
            for index, token in enumerate(tokens)
            if token.type == "heading_open" and token.tag == "h2"
        ]
        # A trace of one rank has no section about ranks.
        assert headings[1:] == [topic.title for name, topic in library.topics().items() if name != "ranks"]

    def test_bars_add_up(self, render_by_name):
        block = render_by_name("churn", "markdown").partition("```text\n")[2].partition("```")[0]
        assert sum(line.count("█") for line in block.splitlines()) == pytest.approx(40, abs=3)


class TestFile:
    def test_the_suffix_sets_the_format(self):
        assert [choose_kind(Path(name)) for name in ("a.html", "a.HTM", "a.md")] == [
            "html",
            "html",
            "markdown",
        ]
        with pytest.raises(UsageError):
            choose_kind(Path("a.pdf"))

    def test_it_is_written_completely_or_not_at_all(self, tmp_path):
        target = tmp_path / "report.md"
        outputs.write_output(target, "before")
        target.chmod(0o640)
        with pytest.raises(UnicodeEncodeError):
            outputs.write_output(target, "a\udcff")
        assert [path.name for path in tmp_path.iterdir()] == ["report.md"]
        assert target.read_text(encoding="utf-8") == "before"
        outputs.write_output(target, "after")
        assert target.read_text(encoding="utf-8") == "after"
        assert target.stat().st_mode & 0o777 == 0o640
        with pytest.raises(UsageError, match="cannot write"):
            outputs.write_output(tmp_path / "no" / "report.md", "")


def run(*arguments, cwd, **environment):
    process = command_line.run("report", *arguments, cwd=cwd, env=environment)
    return process.returncode, process.stdout, process.stderr


class TestCommand:
    @pytest.mark.slow
    def test_a_page_in_a_scope(self, sample, tmp_path):
        code, out, err = run(sample("decode_eager"), "--nvtx", "layer_0", "-o", "r.html", cwd=tmp_path)
        assert (code, out) == (0, ""), err
        assert "note: r.html written" in err
        page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
        assert "Narrowed: --nvtx layer_0" in page.text
        assert [path.name for path in tmp_path.iterdir()] == ["r.html"]

    @pytest.mark.slow
    def test_the_commands_of_the_guide_work(self, sample, tmp_path):
        guide = (REPOSITORY / "docs" / "guide.md").read_text(encoding="utf-8")
        commands = [line.split()[2:] for line in re.findall(r"^    nsys-insight report .*", guide, re.MULTILINE)]
        assert len(commands) == 3
        for name, *flags in commands:
            code, out, err = run(sample(Path(name).stem), *flags, cwd=tmp_path)
            assert code == 0, err
            assert bool(out) == ("-o" not in flags)
        assert {path.name for path in tmp_path.iterdir()} == {"report.html", "report.md"}

    @pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to])
    def test_the_trace_is_not_written_over(self, make, sample, tmp_path):
        trace, other = tmp_path / "trace.md", tmp_path / "other.md"
        trace.write_bytes(sample("churn").read_bytes())
        make(other, trace)
        for output in (trace, other):
            code, _, err = run(trace, "-o", output, cwd=tmp_path)
            assert code == 2
            assert "is the trace itself" in err
        assert trace.read_bytes() == sample("churn").read_bytes()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "arguments",
        [
            ["-o", "r.pdf"],
            ["-o", "no/folder/r.html"],
            ["--template", "agent"],
            ["--format", "csv"],
            ["--explain"],
            ["--step-range", "nope", "-o", "r.html"],
            ["--baseline", "no.sqlite", "-o", "r.html"],
        ],
    )
    def test_impossible_options_are_usage_errors(self, arguments, sample, tmp_path):
        code, out, err = run(sample("churn"), *arguments, cwd=tmp_path)
        assert (code, out) == (2, "")
        assert err.splitlines()[-1].startswith("hint: ")
        assert "Traceback" not in err
        assert list(tmp_path.iterdir()) == []

    def test_only_a_page_imports_the_template_engine(self):
        code = (
            "import sys, nsys_insight.cli.main; print(sorted({'jinja2', 'nsys_insight.page.html'} & set(sys.modules)))"
        )
        process = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY
        )
        assert process.stdout.strip() == "[]"


def test_the_templates_are_installed():
    names = {path.name for path in html._TEMPLATES.iterdir()}
    assert {"page.html.j2", "page.css", "script"} <= names
    assert {path.stem for path in (html._TEMPLATES / "script").iterdir()} == set(html._SCRIPTS)
    assert markdown.MAX_ROWS < html.MAX_ROWS
