"""The report to hand over: what is in it is what the reports say, its pictures are true, and nothing gets out of it."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
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
from markdown_it import MarkdownIt
from opening import open_trace, planted_path
from synthetic import Trace

import nsys_insight
from nsys_insight import outputs
from nsys_insight.diagnose.text import headline
from nsys_insight.errors import UsageError
from nsys_insight.packs import library
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.page import (
    cards,
    content,
    flame,
    html,
    markdown,
    page_kind,
    page_text,
    pictures,
    styles,
    tracks,
    windows,
)
from nsys_insight.page import layer as layers
from nsys_insight.page import timeline as timelines
from nsys_insight.page.queries import ask

REPOSITORY = Path(__file__).parents[1]
SAMPLES = sorted(path.stem for path in (REPOSITORY / "sample_traces").glob("*.sqlite"))
HOSTILE = [
    "void evil<script>alert(1)</script>(float *)",
    '" onmouseover="alert(2)" x=\'',
    "</style></svg></details><img src=x onerror=alert(3)>",
    "{{ 7 * 7 }}{% raw %}",
    "a|b`c``d\n# e <b>f</b> [g](http://h) \x1b[31m \u202e",
    b"caf\xe9 \xff\xfe(float *)",
]
# Questions of their own flags or about one kernel.
ELSEWHERE = {"peaks", "classify-steps", "fusion-candidate", "ranks", "collectives"}


class Page(HTMLParser):
    """What a browser would see: the elements with their attributes, and the text."""

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
    """Compare; sums of floats may differ in the last digits with the order of adding."""
    return left == right or (
        isinstance(left, float) and isinstance(right, float) and math.isclose(left, right, rel_tol=1e-9)
    )


def hostile(path):
    """A decoder whose kernels and ranges have the worst names."""
    trace = Trace()
    host = trace.thread(name=b"thr\xe9ad <i>")
    for _ in range(6):
        with host.nvtx(HOSTILE[0]), host.nvtx(HOSTILE[4]):
            for name in HOSTILE:
                host.launch(name, runs=2_000)
            host.copy("D2H", 8).sync("stream")
    return trace.write(path)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Give a trace, opened once; a sample by its name."""
    folder, known = tmp_path_factory.mktemp("pages"), {}
    makers = {
        "hostile": lambda: hostile(folder / "<b>hostile & co.sqlite"),
        "nothing": lambda: Trace().write(folder / "nothing.sqlite"),
        "kernels only": lambda: many_traces.kernels_only().write(folder / "kernels.sqlite"),
        "everything": lambda: many_traces.everything().write(folder / "everything.sqlite"),
    }

    def make(name):
        if name not in known:
            path = makers[name]() if name in makers else REPOSITORY / "sample_traces" / f"{name}.sqlite"
            known[name] = nsys_insight.open(path)
        return known[name]

    yield make
    for trace in known.values():
        trace.close()


@pytest.fixture(scope="module")
def gathered(opened):
    """Give what is gathered of a trace."""
    return cache(lambda name: content.gather(opened(name), AUTO))


@pytest.fixture(scope="module")
def pages(opened, gathered):
    """Give the report about a trace, of one kind."""

    def make(name, kind="html"):
        if kind == "html":
            trace, found = opened(name), gathered(name)
            return html.page(found, html.draw(trace, AUTO, found))
        return {"markdown": markdown.text, "agent": markdown.agent_text}[kind](gathered(name))

    return cache(make)


class TestContent:
    def test_every_report_is_in_it_once(self):
        named = [pack.name for packs in library.by_topic().values() for pack in packs if pack.page]
        assert len(named) == len(set(named))
        assert set(named) | ELSEWHERE == set(library.built_in())

    @pytest.mark.slow
    def test_the_numbers_are_those_of_the_reports(self, opened, gathered):
        for name, entry in gathered("churn").reports.items():
            for row, other in zip(entry.answer.rows(), opened("churn").answer(name).rows(), strict=True):
                assert all(map(same_cell, row, other)), (name, row, other)

    @pytest.mark.slow
    def test_steps_are_told_as_asked(self, sample):
        with open_trace(sample("decode_eager")) as trace:
            asked = content.gather(trace, StepOptions(tokens=64))
            figures = {figure.label: figure.text for figure in asked.figures}
            (wall,) = (row[1] for row in trace.answer("per-token", tokens=64).rows() if row[0] == "wall_ns")
        assert figures["wall per step"] == f"{wall / 1e6:.2f} ms"
        assert asked.command("per-token").endswith("--tokens 64")
        assert asked.command("top").endswith("decode_eager.sqlite")

    @pytest.mark.parametrize("verdict", ["GPU-bound", "host-bound"])
    def test_the_headline_is_that_of_the_terminal(self, verdict, gathered):
        entry = gathered("churn")
        entry = replace(entry, diagnosis=replace(entry.diagnosis, verdict=verdict))
        shown = html.diagnosis_parts(entry.diagnosis, entry)
        wall, *others = shown["lines"]
        assert [f"churn.sqlite: {shown['verdict']}; {wall}", *others] == headline(entry.diagnosis)

    def test_a_report_that_fails_is_said_to(self, sample, monkeypatch):
        with nsys_insight.open(sample("churn")) as trace:
            answer = trace.answer

            def failing(report, **params):
                if getattr(report, "name", report) == "streams":
                    raise UsageError("no", "")
                return answer(report, **params)

            monkeypatch.setattr(trace, "answer", failing)
            entry = content._report(trace, library.built_in()["streams"], {}, None)
        assert (entry.is_empty, entry.answer.empty) == (True, "no")

    def test_the_first_sentences_of_a_reading(self):
        assert content.sentences("One: a b. Two. Three.", 2) == "One: a b. Two."
        assert content.sentences("Only one.", 2) == "Only one."
        for pack in library.built_in().values():
            assert pack.reading.startswith(content.sentences(pack.reading, 2))


class TestStill:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "name", ["launch bound", "sync bound", "allocating", "profiled", "dependent", "two streams"]
    )
    def test_its_gaps_are_the_planted_ones(self, name):
        planted = plans.ALL[name]()
        with open_trace(planted_path(name)) as trace:
            drawn = timelines.still(trace, AUTO)
        step = planted.steps[drawn.step]
        assert (drawn.window.start_ns, drawn.window.end_ns) == (step.start_ns, step.end_ns)
        truth = {}
        for gap in planted.gaps:
            inside = min(gap.end_ns, step.end_ns) - max(gap.start_ns, step.start_ns)
            if inside > 0:
                truth[gap.cause] = truth.get(gap.cause, 0) + inside
        assert drawn.view.idle_ns == truth

    @pytest.mark.slow
    @pytest.mark.parametrize("name", SAMPLES)
    def test_its_idle_time_is_that_of_step_idle_and_its_step_is_nearest_to_the_median(self, name, opened):
        trace = opened(name)
        drawn = timelines.still(trace, AUTO)
        idle = dict(
            trace.rows(
                f"SELECT cause, sum(idle_ns)::BIGINT AS idle_ns FROM step_idle WHERE step = {drawn.step} GROUP BY 1"
            )
        )
        walls = dict(trace.rows("SELECT step, duration_ns FROM steps WHERE phase = 'steady' AND NOT is_outlier"))
        assert drawn.view.idle_ns == idle
        middle = median(walls.values())
        assert abs(walls[drawn.step] - middle) == min(abs(wall - middle) for wall in walls.values())

    def test_every_operation_and_call_of_the_step_is_in_it(self, opened):
        trace = opened("decode_eager")
        drawn = timelines.still(trace, AUTO)
        from_ns, to_ns = drawn.window
        operations = trace.rows("SELECT start_ns, end_ns FROM gpu_ops")
        calls = trace.rows("SELECT start_ns, end_ns FROM api_calls")
        for kind, events in (("gpu", operations), ("host", calls)):
            (track,) = (track for track in drawn.view.tracks if track.kind == kind)
            inside = [start for start, end in events if start < to_ns and end > from_ns]
            places = sorted(100 * (max(start, from_ns) - from_ns) / (to_ns - from_ns) for start in inside)
            assert [bar.left for bar in drawn.bars(track)] == pytest.approx(places, abs=0.07)
        assert [track.name for track in drawn.view.tracks] == ["NVTX", "", "calls", "stream 7", "GPU idle"]

    @pytest.mark.parametrize("name", SAMPLES)
    def test_everything_is_inside_and_has_a_legend(self, name, opened):
        drawn = timelines.still(opened(name), AUTO)
        for track in drawn.view.tracks:
            assert drawn.bars(track)
            for bar in drawn.bars(track):
                assert 0 <= bar.left < bar.left + bar.width <= 100 + 1e-6
                assert bar.style in styles.LEGEND
                assert bar.tip.startswith(bar.label)
        places = [place for place, _ in drawn.ticks]
        assert places == sorted(set(places))
        assert 4 <= len(places) <= 10
        assert places[0] == 0
        assert places[-1] < 100

    def test_what_is_too_much_is_cut_and_said(self, opened, monkeypatch):
        whole = timelines.still(opened("decode_eager"), AUTO)
        monkeypatch.setattr(timelines, "MOST_STILL", tracks.Most(50, 20, 10, 300, 3))
        cut = timelines.still(opened("decode_eager"), AUTO)
        assert (whole.view.cut, len(cut.view.cut)) == ([], 3)
        counts = {track.kind: len(track.events) for track in cut.view.tracks}
        assert (counts["gpu"], counts["host"], counts["idle"]) == (50, 20, 10)
        assert cut.window.start_ns == whole.window.start_ns < cut.window.end_ns < whole.window.end_ns
        assert cut.view.cut[0].endswith("50 operations")

    @pytest.mark.slow
    def test_without_steps_it_is_the_whole(self, tmp_path):
        trace = Trace()
        trace.thread().launch("a", runs=1_000).idle(10_000).launch("b", runs=3_000)
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as one:
            drawn = timelines.still(one, AUTO)
            operations = one.rows("SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM gpu_ops")
        assert (drawn.step, [(drawn.window.start_ns, drawn.window.end_ns)]) == (None, operations)

    @pytest.mark.parametrize("name", ["nothing", "calls only"])
    def test_nothing_is_nothing(self, name, tmp_path):
        bare = Trace() if name == "nothing" else many_traces.calls_only()
        with open_trace(bare.write(tmp_path / "trace.sqlite")) as trace:
            assert timelines.still(trace, AUTO) is None
            assert layers.layer(trace, AUTO) is None


class TestTimeline:
    @pytest.mark.slow
    def test_all_of_a_small_run_is_in_it(self, opened):
        trace = opened("decode_eager")
        drawn = timelines.timeline(trace, AUTO)
        data = drawn.data
        assert data["windows"] == [[0, data["ns"]]]
        assert (drawn.step, drawn.view.cut) == (timelines.still(trace, AUTO).step, [])
        for kind, view in (("gpu", "gpu_ops"), ("host", "outer_api_calls")):
            (lane,) = (lane for lane in data["lanes"] if lane["kind"] == kind)
            starts = [data["origin"] + at for at in accumulate(lane["at"])]
            ends = [start + lasts for start, lasts in zip(starts, lane["lasts"], strict=True)]
            wanted = trace.rows(f"SELECT start_ns, end_ns FROM {view} ORDER BY 1, 2")
            assert list(zip(starts, ends, strict=True)) == wanted
        idle = data["lanes"][-1]
        assert sum(idle["lasts"]) == trace.rows("SELECT sum(idle_ns)::BIGINT AS ns FROM gpu_idle")[0].ns
        for at, parts in idle["parts"].items():
            assert sum(parts) == idle["lasts"][at]
            assert len(parts) == len(data["things"][idle["what"][at]]) - 4
        steps = trace.rows("SELECT step, start_ns, duration_ns, gpu_busy_ns FROM steps ORDER BY start_ns")
        assert [(step, data["origin"] + at, wall, busy) for step, _, at, wall, busy, _ in data["steps"]] == steps
        busy = data["busy"]
        (wall,) = trace.rows("SELECT duration_ns, (SELECT sum(busy_ns) FROM used_gpus) AS busy_ns FROM wall")
        assert sum(busy["pct"]) / 100 * busy["each"] == pytest.approx(wall.busy_ns, rel=0.02)

    def test_the_size_of_a_window_is_how_many_operations_and_calls_reach_into_it(self, sample):
        with nsys_insight.open(sample("churn")) as trace:
            events = trace.rows(
                "SELECT start_ns, end_ns FROM gpu_ops UNION ALL FROM (SELECT start_ns, end_ns FROM outer_api_calls)"
            )
            edges = sorted({at for event in events[::40] for at in (event.start_ns, event.end_ns, event.end_ns + 1)})
            pairs = [(edges[0] - 9, edges[0] - 3), *zip(edges, edges[3:], strict=False), (edges[0], edges[-1] + 9)]
            starts, ends = ([pair[at] for pair in pairs] for at in (0, 1))
            found = {row.place: row.events for row in ask(trace, "window_sizes", AUTO, starts=starts, ends=ends)}
        for place, (start, end) in enumerate(pairs):
            assert found.get(place, 0) == sum(event.start_ns < end and event.end_ns > start for event in events)
        assert len(found) < len(pairs)

    @pytest.mark.slow
    def test_of_a_long_run_what_is_odd_is_in_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr(windows, "EVENTS", 60)
        with open_trace(plans.straggling().write(tmp_path / "trace.sqlite")) as trace:
            drawn = timelines.timeline(trace, AUTO, trace.answer("gaps").dicts(1))
            odd = trace.rows("SELECT start_ns, end_ns FROM steps WHERE is_outlier")
            count = len(trace.rows("FROM steps"))
        inside = [(drawn.data["origin"] + start, drawn.data["origin"] + end) for start, end in drawn.data["windows"]]
        assert all(any(start <= one.start_ns and one.end_ns <= end for start, end in inside) for one in odd)
        assert any(start <= drawn.first.start_ns and drawn.first.end_ns <= end for start, end in inside)
        assert 1 < len(inside) < count
        for lane in drawn.data["lanes"]:
            for start, lasts in zip(accumulate(lane["at"]), lane["lasts"], strict=True):
                assert any(start < to and start + lasts > at for at, to in drawn.data["windows"]), lane["kind"]

    def test_nothing_is_nothing(self, tmp_path):
        with open_trace(Trace().write(tmp_path / "trace.sqlite")) as trace:
            assert timelines.timeline(trace, AUTO) is None

    def test_tracks_are_as_tall_as_their_names_beside_them(self):
        css = (html._PAGE / "page.css").read_text()
        heights = dict(re.findall(r"\.names \.(\w+) \{ height: (\d+)px", css))
        assert {kind: int(heights[kind]) for kind in tracks.HEIGHTS} == tracks.HEIGHTS
        assert int(heights["axis"]) == tracks.SCALE
        assert f"margin-bottom: {tracks.GAP}px; text-overflow" in css


class TestCards:
    @pytest.mark.slow
    def test_a_card_says_of_a_kernel_what_its_launches_say(self, opened):
        trace = opened("decode_eager")
        line = timelines.timeline(trace, AUTO)
        found = cards.cards(trace, AUTO, line.first, {"classify-kernels": trace.answer("classify-kernels")})
        assert [card["key"] for card in found.values()] == [row["name"] for row in trace.answer("top").dicts()]
        assert set(line.kernels) == set(found)
        kernel, card = next(iter(found.items()))
        launched = trace.rows(
            f"SELECT start_ns, duration_ns FROM kernel_events WHERE name_id = {kernel} ORDER BY start_ns"
        )
        lasted = [row.duration_ns for row in launched]
        assert (card["least"], card["most"]) == (min(lasted), max(lasted))
        ratio = max(lasted) / min(lasted)
        counts = dict.fromkeys(range(cards.BINS), 0)
        for ns in lasted:
            counts[min(int(cards.BINS * math.log(ns / min(lasted)) / math.log(ratio)), cards.BINS - 1)] += 1
        assert {at: calls for at, calls in counts.items() if calls} == dict(card["bins"])
        by_step = trace.rows(f"SELECT step, kernel_ns, calls FROM step_kernels WHERE name_id = {kernel} ORDER BY 1")
        assert [tuple(step) for step in card["steps"]] == [
            (row.step, row.step, row.kernel_ns, row.calls) for row in by_step
        ]
        assert [shape[2] for shape in card["shapes"]] == [f"{len(lasted):,}"]
        inside = [row.start_ns for row in launched if line.first.start_ns <= row.start_ns < line.first.end_ns]
        assert [place[:2] for place in card["places"]] == [["decode_step/layer_#", len(inside)]]
        assert card["bound"][0][2] == "latency"

    @pytest.mark.slow
    def test_many_steps_share_columns_and_a_kernel_of_one_duration_has_one_bin(self, tmp_path, monkeypatch):
        monkeypatch.setattr(cards, "COLUMNS", 4)
        trace = Trace()
        host = trace.thread()
        for _ in range(12):
            with host.nvtx("step"):
                host.launch("even", runs=2_000).launch("other", runs=1_000).sync("stream")
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as one:
            line = timelines.timeline(one, AUTO)
            even, _ = cards.cards(one, AUTO, line.first, {}).values()
        assert (even["bins"], even["least"], even["most"]) == ([[0, 12]], 2_000, 2_000)
        assert len(even["steps"]) == 4
        assert {(ns, calls) for _, _, ns, calls in even["steps"]} == {(2_000, 1)}
        assert even["bound"] == even["ncu"] == []


class TestIcicle:
    def test_ranges_stand_below_what_is_around_them_and_are_as_wide_as_they_take(self, opened):
        trace = opened("decode_eager")
        root, outer, inner = flame.icicle(trace, AUTO).rows
        paths = trace.rows("SELECT path, sum(duration_ns)::BIGINT AS ns FROM nvtx_nesting GROUP BY 1")
        top = {row.path: row.ns for row in paths if "/" not in row.path}
        assert [bar.width for bar in root] == [100]
        assert {bar.label: bar.width for bar in outer} == pytest.approx(
            {name: 100 * ns / sum(top.values()) for name, ns in top.items()}
        )
        below = sum(row.ns for row in paths if row.path.startswith("decode_step/"))
        (layers_,) = (bar for bar in inner if bar.left == outer[0].left)
        assert (layers_.label, layers_.width) == ("layer_#", pytest.approx(100 * below / sum(top.values())))
        assert "128 times" in layers_.tip

    def test_a_range_that_stays_open_is_as_long_as_what_is_in_it(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        with host.nvtx("outer"), host.nvtx("inner"):
            host.launch("k", runs=5_000).sync("stream")
        path = trace.write(tmp_path / "trace.sqlite")
        with closing(sqlite3.connect(path)) as file_, file_:
            file_.execute("UPDATE NVTX_EVENTS SET \"end\" = NULL WHERE text = 'outer'")
        with open_trace(path) as one:
            root, outer, inner = flame.icicle(one, AUTO).rows
        assert [(bars[0].label.partition(":")[0], bars[0].width) for bars in (root, outer, inner)] == [
            ("NVTX ranges", 100), ("outer", 100), ("inner", 100),
        ]  # fmt: skip

    def test_ranges_that_are_in_no_other_are_no_icicle(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        with host.nvtx("a"):
            host.launch("k")
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as one:
            assert flame.icicle(one, AUTO) is None


class TestPictures:
    @pytest.mark.parametrize("name", SAMPLES)
    @pytest.mark.parametrize(("report", "draw"), [("idle", pictures.idle), ("classify", pictures.budget)])
    def test_a_stack_is_the_whole_wall(self, name, report, draw, opened):
        (stack,) = draw(opened(name).answer(report))
        assert sum(part.width for part in stack.parts) == pytest.approx(100)
        for one, other in pairwise(stack.parts):
            assert one.left + one.width == pytest.approx(other.left)
        assert {part.style for part in stack.parts} <= set(styles.LEGEND)

    def test_the_top_kernels_are_drawn_against_the_first(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for name, runs in (("gemm", 8_000), ("norm", 4_000), ("norm", 2_000), ("copy", 1_000)):
            host.launch(name, runs=runs)
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as one:
            bars = pictures.top(one.answer("top"))
        assert [(bar.label, bar.width) for bar in bars] == [("gemm", 100), ("norm", 75), ("copy", 12.5)]

    def test_a_column_is_a_step(self, tmp_path):
        planted = plans.straggling()
        with open_trace(planted.write(tmp_path / "trace.sqlite")) as trace:
            pace = pictures.pace(trace.answer("steps"))
            steady = [row for row in trace.steps().to_dicts() if row["phase"] == "steady"]
        walls = [row["duration_ns"] for row in steady]
        assert [column.busy + column.idle for column in pace.columns] == pytest.approx(
            [100 * wall / max(walls) for wall in walls]
        )
        assert [column.busy for column in pace.columns] == pytest.approx(
            [100 * row["gpu_busy_ns"] / max(walls) for row in steady]
        )
        assert [number for number, column in enumerate(pace.columns) if column.odd] == [7]

    @pytest.mark.slow
    def test_many_steps_share_columns(self, tmp_path, monkeypatch):
        monkeypatch.setattr(pictures, "BARS", 5)
        with open_trace(plans.straggling().write(tmp_path / "trace.sqlite")) as trace:
            pace = pictures.pace(trace.answer("steps"))
            steady = [row for row in trace.steps().to_dicts() if row["phase"] == "steady"]
        assert pace.per_column == 3
        assert len(pace.columns) == -(-len(steady) // 3) <= 5
        assert [column.odd for column in pace.columns].index(True) == 7 // 3

    def test_one_step_has_no_pace(self, tmp_path):
        with open_trace(Trace().write(tmp_path / "trace.sqlite")) as trace:
            assert pictures.pace(trace.answer("steps")) is None


class TestLayer:
    def test_chains_stand_where_their_kernels_are(self, opened):
        trace = opened("decode_eager")
        drawn = layers.layer(trace, AUTO)
        known = {row["candidate"]: row for row in trace.fusion().to_dicts()}
        words = {}
        for candidate, operation, role in trace.rows(
            "SELECT candidate, operation, role FROM fusion_kernels ORDER BY candidate, position"
        ):
            words.setdefault(candidate, []).append((operation, role == "fused"))
        assert (len(drawn.kernels), drawn.layers, drawn.is_cut) == (45, 4, False)
        assert max(kernel.height for kernel in drawn.kernels) == 100
        assert sum(len(row) for row in drawn.rows) > 5
        for row in drawn.rows:
            for chain in row:
                wanted = words[chain.candidate]
                assert known[chain.candidate]["verdict"] == "YES"
                assert chain.chosen == known[chain.candidate]["chosen"]
                assert [kernel.word for kernel in drawn.kernels[chain.first : chain.last + 1]] == [
                    word for word, _ in wanted
                ]
                assert chain.fused == {chain.first + at for at, (_, fused) in enumerate(wanted) if fused}
        chosen = [chain.chosen for row in drawn.rows for chain in row[:1]]
        assert chosen == sorted(chosen, reverse=True)

    def test_chosen_chains_share_no_kernel(self, opened):
        drawn = layers.layer(opened("decode_eager"), AUTO)
        taken = [at for row in drawn.rows for chain in row if chain.chosen for at in chain.fused]
        assert len(taken) == len(set(taken)) > 20


EVERY = ["decode_eager", "churn", "hostile", "nothing", "kernels only", "everything"]


class TestHtml:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", EVERY)
    def test_it_is_well_formed_and_needs_nothing(self, name, pages):
        page = Page(pages(name))
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
    def test_only_its_own_style_and_script_may_run(self, name, pages):
        page = Page(pages(name))
        assert (len(page.all("style")), [one.get("type") for one in page.all("script")]) == (
            1,
            ["application/json", None],
        )
        (policy,) = (
            meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"
        )
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert (rules["default-src"], rules["base-uri"], rules["form-action"]) == ("'none'", "'none'", "'none'")
        for what in ("style", "script"):
            digest = base64.b64encode(hashlib.sha256(page.raw[what].encode()).digest()).decode()
            assert rules[f"{what}-src"] == f"'sha256-{digest}'"
        assert (
            page.raw["script"].replace("http://www.w3.org/2000/svg", "").count("http")
            == 0
            == page.raw["style"].count("http")
        )

    def test_names_are_text_whatever_is_in_them(self, pages):
        page = Page(pages("hostile"))
        assert "void evil<script>alert(1)</script>(float *)" in page.text
        assert "<img src=x onerror=alert(3)>" in page.text
        assert "{{ 7 * 7 }}" in page.text
        assert "\x1b" not in pages("hostile")
        assert "\u202e" not in pages("hostile")
        assert "<b>hostile & co.sqlite" in page.text

    @pytest.mark.parametrize("name", EVERY)
    def test_ids_are_unique_and_links_lead_somewhere(self, name, pages):
        page = Page(pages(name))
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        assert {link["href"][1:] for link in page.all("a")} <= set(ids)

    def test_every_cell_has_its_column_and_every_number_its_raw_value(self, opened, pages):
        answer = opened("churn").answer("top")
        table = pages("churn").partition('<details class="report" id="top"')[2].partition("</table>")[0]
        rows = [
            Page(f"<table>{row}").all("td")
            for row in re.findall(r"<tr>.*?</tr>", table.partition("<tbody>")[2], re.DOTALL)
        ]
        assert len(rows) == answer.row_count
        at = [column.name for column in answer.columns].index("total_ns")
        assert [int(cells[at]["data-v"]) for cells in rows] == [row[at] for row in answer.rows()]
        assert all(len(cells) == len(answer.columns) for cells in rows)

    def test_long_tables_are_cut_and_say_so(self, gathered):
        text = html.page(gathered("decode_eager"), html.Drawings(), limit=7)
        gaps = text.partition('id="gaps"')[2].partition("</details>\n</details>")[0]
        assert gaps.count("<tr>") == 1 + 7
        assert "7 of 1,000 rows are here" in gaps

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
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as one:
            assert len(page_text(one, "html").encode()) < 3_000_000

    @pytest.mark.slow
    def test_what_ncu_measured_is_in_it(self, sample, tmp_path):
        data = sorted((REPOSITORY / "tests" / "data" / "ncu").glob("churn.ncu.*.csv"))
        with nsys_insight.open(sample("churn"), ncu=_imported(data, tmp_path)) as trace:
            found = content.gather(trace, AUTO)
            findings = found.measured.rows()
            page = html.page(found, html.Drawings())
            assert [finding[0] for finding in findings]
            assert all(html_escape(finding[0]) in page.partition('id="ncu"')[2] for finding in findings)
            assert 'id="headroom"' in page
            assert "### What the Nsight Compute metrics show" in markdown.text(found)

    @pytest.mark.slow
    def test_the_roofline_is_drawn_where_sizes_are_given(self, tmp_path):
        trace = Trace()
        trace.thread().launch("hgemm_nn", runs=1_000_000)
        with open_trace(trace.write(tmp_path / "trace.sqlite")) as one:
            drawn = page_text(one, "html", sizes={"gemm": "4096,4096,1024"})
        assert "flop/byte" in drawn.partition('id="roofline-picture"')[2].partition("</figure>")[0]


def _imported(files, folder):
    from nsys_insight.ingest.ncu import store

    target = folder / "data.ncu.duckdb"
    store.write(store.read_all(list(files)), target, None)
    return target


class TestMarkdown:
    @pytest.mark.parametrize("name", EVERY)
    @pytest.mark.parametrize("kind", ["markdown", "agent"])
    def test_it_is_headings_tables_and_text(self, name, kind, pages):
        tokens = MarkdownIt("commonmark").enable("table").parse(pages(name, kind))
        tags = [tag for token in tokens if token.type == "html_block" for tag in re.findall(r"</?\w+", token.content)]
        assert set(tags) <= {"<details", "</details", "<summary", "</summary"}
        assert tags.count("<details") == tags.count("</details") == tags.count("<summary")
        inline = [child for token in tokens for child in token.children or ()]
        assert not [child for child in inline if child.type in ("html_inline", "image", "link_open")]

    def test_its_tables_are_tables(self, gathered, pages):
        tokens = MarkdownIt("commonmark").enable("table").parse(pages("churn", "markdown"))
        full = [entry for entry in gathered("churn").reports.values() if not entry.is_empty]
        assert sum(token.type == "table_open" for token in tokens) == len(full) + 1  # and the figures
        headings = [
            tokens[at + 1].content
            for at, token in enumerate(tokens)
            if token.type == "heading_open" and token.tag == "h2"
        ]
        # What is about several ranks is none of one's.
        assert headings[1:] == [topic.title for name, topic in library.topics().items() if name != "ranks"]

    def test_bars_add_up(self, pages):
        block = pages("churn", "markdown").partition("```text\n")[2].partition("```")[0]
        assert sum(line.count("█") for line in block.splitlines()) == pytest.approx(40, abs=3)


class TestAgent:
    @pytest.mark.parametrize("name", EVERY)
    def test_it_is_short(self, name, pages):
        # A tokenizer makes fewer tokens of a text than it has words of at most four letters, numbers and marks.
        assert len(re.findall(r"\w{1,4}|[^\w\s]", pages(name, "agent"))) < 6_000
        assert len(pages(name, "agent")) < 14_000  # about 3.5 characters a token

    def test_its_columns_exist(self):
        shown = [pack for pack in library.built_in().values() if pack.agent]
        assert len(shown) > 5
        for pack in shown:
            assert set(pack.agent.columns) <= set(pack.columns), pack.name

    def test_its_commands_run(self, sample, pages):
        commands = set(re.findall(r"`nsys-insight ([^`]+)`", pages("churn", "agent")))
        assert len(commands) > 5
        for command in commands:
            report, path, *_ = shlex.split(command)
            assert report in library.built_in()
            assert Path(path) == sample("churn")

    def test_the_diagnosis_comes_first(self, gathered, pages):
        assert gathered("churn").diagnosis.verdict in pages("churn", "agent").partition("## Cost per token")[0]


class TestFile:
    def test_the_suffix_says_what_is_written(self):
        assert [page_kind(Path(name), "full") for name in ("a.html", "a.HTM", "a.md")] == [
            "html",
            "html",
            "markdown",
        ]
        assert [page_kind(output, "agent") for output in (None, Path("a.md"))] == ["agent", "agent"]
        for output, template in ((Path("a.pdf"), "full"), (Path("a.html"), "agent"), (None, "short")):
            with pytest.raises(UsageError):
                page_kind(output, template)

    def test_it_is_written_whole_or_not_at_all(self, tmp_path):
        target = tmp_path / "report.md"
        target.write_text("before", encoding="utf-8")
        target.chmod(0o640)
        with pytest.raises(UnicodeEncodeError):
            outputs.save(target, "a\udcff")
        assert [path.name for path in tmp_path.iterdir()] == ["report.md"]
        assert target.read_text(encoding="utf-8") == "before"
        outputs.save(target, "after")
        assert target.read_text(encoding="utf-8") == "after"
        assert target.stat().st_mode & 0o777 == 0o640
        with pytest.raises(UsageError, match="cannot write"):
            outputs.save(tmp_path / "no" / "report.md", "")


def run(*arguments, cwd, **environment):
    done = command_line.run("report", *arguments, cwd=cwd, env=environment)
    return done.returncode, done.stdout, done.stderr


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
    def test_as_the_guide_says(self, sample, tmp_path):
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
            ["-o", "r.html", "--template", "agent"],
            ["--template", "short"],
            ["--format", "csv"],
            ["--explain"],
            ["--step-range", "nope", "-o", "r.html"],
            ["--compare", "-o", "r.html"],
        ],
    )
    def test_what_cannot_be_is_said(self, arguments, sample, tmp_path):
        code, out, err = run(sample("churn"), *arguments, cwd=tmp_path)
        assert (code, out) == (2, "")
        assert err.splitlines()[-1].startswith("hint: ")
        assert "Traceback" not in err
        assert list(tmp_path.iterdir()) == []

    def test_the_template_engine_is_imported_by_a_page_alone(self):
        code = (
            "import sys, nsys_insight.cli.main; print(sorted({'jinja2', 'nsys_insight.page.html'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
        assert done.stdout.strip() == "[]"


def test_the_pages_parts_are_beside_it():
    names = {path.name for path in html._PAGE.iterdir()}
    assert {"page.html.j2", "page.css", "script"} <= names
    assert {path.stem for path in (html._PAGE / "script").iterdir()} == set(html._SCRIPTS)
    assert markdown.ROWS < html.ROWS
