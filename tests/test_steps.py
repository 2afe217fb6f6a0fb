"""Steps: found by every method in traces whose steps are known, and what they hold, against plain loops."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import oracle
import planted
import polars as pl
import pytest
from ailments import run_steps
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from opening import diagnose_with, open_trace, planted_path
from real_traces import SAMPLE_NAMES
from synthetic import Trace

from nsys_insight.errors import UsageError
from nsys_insight.facts.steps.choice import choose_loop, describe_rejection

SAMPLES = Path(__file__).parents[1] / "sample_traces"
COUNTS = ("kernels", "launch_calls", "graph_launches", "mallocs", "frees", "sync_calls", "sync_points",
          "h2d_copies", "h2d_bytes", "d2h_copies", "d2h_bytes")  # fmt: skip


def ask(path, scope=None, **options):
    """Give the rows of `steps`, in order, and the row of `step_method`."""
    with open_trace(path, **scope or {}) as trace:
        trace.answer("steps", **options)
        session = trace._connection
        steps = pl.DataFrame(session.duckdb.sql("SELECT * FROM steps ORDER BY start_ns, step")).to_dicts()
        (method,) = pl.DataFrame(session.duckdb.sql("SELECT * FROM step_method")).to_dicts()
    return steps, method


def read_method(path):
    """Give the row of `step_method`."""
    with open_trace(path) as trace:
        return trace.sql("FROM step_method").to_dicts()[0]


def only_steps(rows):
    return [row for row in rows if row["step"] is not None]


@pytest.fixture(scope="module", params=planted.ALL)
def planted_rows(request):
    """Each loop with the rows of its process; has_several processes are selected one by one."""
    truth = planted.ALL[request.param]()
    path = planted_path(request.param)
    has_several = len(truth.loops) > 1
    return [(loop, ask(path, {"process": loop.host.pid} if has_several else None)[0]) for loop in truth.loops]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu_share": 0.3}, "hold 30.0% of the GPU time, less than 40%"),
        ({"launches": 0}, "hold 90.0% of the GPU time, but they launch nothing"),
        ({"regular_share": 0.2}, "but less than 50% of them have about the same number of operations"),
        ({}, "but steps that are cut at them have no duration"),
    ],
)
def test_a_loop_that_is_not_the_step_is_named_with_the_reason(changes, reason):
    loop = SimpleNamespace(iterations=6, operations=4.0, gpu_share=0.9, launches=2, launch_share=0.5, regular_share=1.0)
    vars(loop).update(changes)
    text = describe_rejection(loop)
    assert text.startswith("6 iterations of 4 operations")
    assert text.endswith(reason)


class TestPlanted:
    """Every planted loop is found as it was planted, to the nanosecond."""

    @pytest.mark.slow
    def test_walls_and_busy_time(self, planted_rows):
        for loop, rows in planted_rows:
            own_rows = [row for row in rows if row["step"] is not None or row["phase"] == "prefill"]
            assert [(row["start_ns"], row["end_ns"], row["gpu_busy_ns"], row["gpu_idle_ns"]) for row in own_rows] == [
                (step.start_ns, step.end_ns, step.busy_ns, sum(step.idle_ns.values())) for step in loop.steps
            ]

    def test_counts(self, planted_rows):
        for loop, rows in planted_rows:
            own_rows = [row for row in rows if row["step"] is not None or row["phase"] == "prefill"]
            for row, step in zip(own_rows, loop.steps, strict=True):
                assert {name: row[name] for name in COUNTS} == {name: step.counts.get(name, 0) for name in COUNTS}

    def test_phases(self, planted_rows):
        for loop, rows in planted_rows:
            own_rows = [row["phase"] for row in rows if row["step"] is not None or row["phase"] == "prefill"]
            assert own_rows == [*(step.phase for step in loop.steps[:-1]), "tail"]

    def test_outliers(self, planted_rows):
        for loop, rows in planted_rows:
            walls = sorted(step.wall_ns for step in loop.steps)
            median_wall = walls[len(walls) // 2]
            outliers = {row["step"] for row in rows if row["is_outlier"]}
            assert outliers <= {number for number, step in enumerate(loop.steps) if step.wall_ns > 1.1 * median_wall}


@pytest.mark.slow
def test_a_straggling_step_is_named_with_what_differed(tmp_path):
    path = planted.straggling(12, slow_step=7).write(tmp_path / "trace.sqlite")
    rows, method = ask(path)
    (outlier,) = [row for row in rows if row["is_outlier"]]
    assert outlier["step"] == 7
    assert "500 µs more idle" in outlier["reason"]
    assert method["outlier_count"] == 1
    with open_trace(path) as trace:
        assert any("500 µs more idle" in note for note in trace.answer("steps").notes)


@pytest.mark.slow
def write_steps(path, thinking_us):
    """Write steps of equal work, before which the host is busy for these times."""
    trace = Trace()
    loop = planted.Loop(trace, nvtx="work")
    for time_us in thinking_us:
        loop.step()
        loop.python(1_000 * time_us)
        loop.launch("gemm(float *)", 20_000)
        loop.copy("D2H", 8, 1_000)
        loop.sync()
    return planted.planted(trace, loop).write(path)


def test_steps_name_the_longest_where_none_is_an_outlier(tmp_path):
    with open_trace(write_steps(tmp_path / "even.sqlite", [500, 510, 505, 520, 500, 510])) as trace:
        (note,) = trace.answer("steps").notes_named("outliers")
        longest = max(trace.answer("steps").dicts(), key=lambda row: row["duration_ns"])
    assert longest["step"] == 3
    assert note.startswith("no step is an outlier: the longest, step 3, takes 5")


def test_steps_that_differ_by_more_than_two_times_are_not_called_steady(tmp_path):
    with open_trace(write_steps(tmp_path / "uneven.sqlite", [300, 900, 350, 800, 500, 700])) as trace:
        durations = [row["duration_ns"] for row in trace.answer("steps").dicts() if row["phase"] == "steady"]
        notes = trace.answer("steps").notes
        headline = diagnose_with(trace).text(width=100)
    assert max(durations) > 2 * min(durations)
    assert any(note.endswith("and are not steady: figures per step are means of unlike steps (see steps)")
               for note in notes)  # fmt: skip
    assert not any("no step is an outlier" in note or "are steady" in note for note in notes)
    assert " steady steps" not in headline
    assert "and are not steady" in headline


def test_steps_that_allocate_at_first_are_warm_up(tmp_path):
    rows, method = ask(planted.allocating(12, warm_up=2).write(tmp_path / "trace.sqlite"))
    assert [row["phase"] for row in rows] == ["warm-up"] * 2 + ["steady"] * 9 + ["tail"]
    assert "allocations and frees: 2, usually 0" in rows[0]["reason"]
    assert (method["warm_up_count"], method["steady_count"], method["tail_count"]) == (2, 9, 1)


@pytest.mark.slow
def test_prefill_is_a_phase_and_no_step(tmp_path):
    rows, method = ask(planted.prefill_and_decode(8).write(tmp_path / "trace.sqlite"))
    assert [(row["step"], row["phase"]) for row in rows[:2]] == [(None, "prefill"), (0, "steady")]
    assert (method["step_count"], method["prefill_count"]) == (8, 1)


@pytest.mark.slow
@pytest.mark.parametrize("make", [planted.launch_bound, planted.deep_queue, planted.sync_bound])
def test_ranges_and_the_sequence_tell_the_same_steps(make, tmp_path):
    truth = make(nvtx="iteration #")
    path = truth.write(tmp_path / "trace.sqlite")
    by_range, method = ask(path)
    by_sequence, _ = ask(path, step_method="sequence")
    assert (method["method"], method["pattern"]) == ("nvtx", "iteration #")
    assert [row["kernels"] for row in by_range] == [row["kernels"] for row in by_sequence] == [9] * len(truth.steps)


@pytest.mark.slow
def test_with_a_deep_queue_the_wall_is_the_gpus_and_not_the_hosts(tmp_path):
    # The host is through with all steps while the GPU works on the first.
    truth = planted.deep_queue(nvtx="step")
    rows, method = ask(truth.write(tmp_path / "trace.sqlite"))
    assert method["method"] == "nvtx"
    assert [(row["start_ns"], row["end_ns"]) for row in rows] == [(step.start_ns, step.end_ns) for step in truth.steps]
    assert all(row["gpu_idle_ns"] == 0 for row in rows)


class TestRanges:
    @staticmethod
    def trace(names, **outer):
        trace = Trace()
        host = trace.thread()
        for name in names:
            with host.nvtx(name):
                host.launch("a", runs=3_000).launch("b", runs=2_000).sync("stream")
            host.idle(1_000)
        if outer:
            host.range(outer["name"], 0, host.now)
        return trace

    @pytest.mark.slow
    def test_numbers_in_names_count_steps(self, tmp_path):
        path = self.trace([f"iteration {number}" for number in range(6)], name="training").write(tmp_path / "t.sqlite")
        rows, method = ask(path)
        assert (method["method"], method["pattern"], method["step_count"]) == ("nvtx", "iteration #", 6)
        assert [row["duration_ns"] for row in rows] == [row["host_end_ns"] - row["host_start_ns"] for row in rows]

    @pytest.mark.slow
    def test_numbers_that_come_again_are_parts_of_a_step(self, tmp_path):
        path = self.trace([f"layer_{number % 3}" for number in range(12)]).write(tmp_path / "t.sqlite")
        assert read_method(path)["method"] != "nvtx"

    @pytest.mark.slow
    def test_the_outermost_of_two_is_the_step(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for _ in range(5):
            with host.nvtx("step"):
                for _ in range(3):
                    with host.nvtx("part"):
                        host.launch("a").sync("stream")
        path = trace.write(tmp_path / "t.sqlite")
        assert read_method(path)["pattern"] == "step"
        assert ask(path, step_range="part")[1]["step_count"] == 15

    def test_a_range_that_holds_little_of_the_work_marks_no_steps(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for _ in range(5):
            with host.nvtx("logging"):
                host.launch("tiny", runs=100)
            host.launch("big", runs=50_000).sync("stream")
        assert read_method(trace.write(tmp_path / "t.sqlite"))["method"] == "sequence"

    @pytest.mark.parametrize(
        ("phases", "expected"),
        [
            (["forward", "backward", "optimizer"] * 4, ("forward, backward, optimizer", 4)),
            (["forward", "backward", "optimizer"] * 2 + ["forward"], ("forward, backward, optimizer", 2)),
            (["forward", "backward", "forward", "backward", "optimizer"] * 3,
             ("forward, ..., optimizer", 3)),
            (["setup", *["prepare", "network"] * 3], ("prepare, network", 3)),
            # An evaluation in between: it is not the same again and again.
            (["forward", "backward", "forward", "backward", "evaluation", "forward", "backward", "evaluation"], None),
        ],
    )  # fmt: skip
    def test_phases_that_repeat_are_a_step(self, tmp_path, phases, expected):
        trace = Trace()
        host = trace.thread()
        for name in phases:
            with host.nvtx(name):
                host.launch(f"{name} kernel", runs=20_000).launch("b", runs=20_000)
                with host.nvtx("inner"):
                    host.launch("c", runs=5_000)
            host.launch("d", runs=1_000).idle(1_000)
        method = read_method(trace.write(tmp_path / "t.sqlite"))
        steps = (method["pattern"], method["step_count"]) if method["method"] == "nvtx" else None
        assert steps == expected

    @pytest.mark.parametrize(("runs", "is_step"), [(12_000, True), (8_000, False)])
    def test_the_only_ranges_are_steps_if_they_hold_half_of_the_work(self, tmp_path, runs, is_step):
        trace = Trace()
        host = trace.thread()
        for _ in range(5):
            with host.nvtx("compiled"):
                host.launch("a", runs=runs)
            host.copy("H2D", 1 << 20, runs=10_000).sync("stream")
        assert (read_method(trace.write(tmp_path / "t.sqlite"))["method"] == "nvtx") == is_step

    def test_parts_of_a_layer_are_no_step(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for _ in range(6):
            host.launch("embed", runs=5_000)
            for _ in range(3):
                for name in ("attention", "mlp"):
                    with host.nvtx(name):
                        host.launch(name, runs=5_000)
            host.launch("sample", runs=5_000).copy("D2H", 8, runs=1_000).sync("stream")
        method = read_method(trace.write(tmp_path / "t.sqlite"))
        assert (method["method"], method["step_count"]) == ("sequence", 6)

    def test_a_name_that_is_not_there_is_a_usage_error(self, sample):
        with pytest.raises(UsageError) as caught:
            ask(sample("decode_eager"), step_range="decode_stop")
        assert "decode_stop" in caught.value.message
        assert "nsys-insight nvtx" in caught.value.hint

    @pytest.mark.slow
    def test_the_ranges_of_the_scope_are_the_steps_however_few(self, sample):
        steps, method = ask(sample("decode_eager"), {"nvtx": "prefill"})
        assert (method["method"], method["step_count"]) == ("nvtx", 1)
        assert [row["phase"] for row in steps] == ["steady"]


class TestReal:
    @pytest.mark.parametrize(
        ("name", "steps"),
        [("decode_eager", 32), ("decode_graph_node", 32), ("decode_graph_whole", 32), ("decode_fresh", 16)],
    )
    def test_every_method_finds_the_steps_of_the_workload(self, sample, name, steps):
        graph = "graph" in name
        rows_by_method = {
            method: only_steps(ask(sample(name), step_method=method)[0])
            for method in ["nvtx", "sequence", *(["graph"] if graph else [])]
        }
        assert {method: len(rows) for method, rows in rows_by_method.items()} == dict.fromkeys(rows_by_method, steps)
        kernels = {tuple(row["kernels"] for row in rows) for rows in rows_by_method.values()}
        assert kernels == {({"decode_graph_whole": None, "decode_graph_node": 197}.get(name, 196),) * steps}

    @pytest.mark.slow
    def test_without_ranges_graphs_are_found_before_the_sequence(self, sample, tmp_path):
        import shutil
        import sqlite3
        from contextlib import closing

        for name in ("decode_graph_node", "decode_graph_whole"):
            path = tmp_path / f"{name}.sqlite"
            shutil.copy(sample(name), path)
            with closing(sqlite3.connect(path)) as database, database:
                database.execute("DROP TABLE NVTX_EVENTS")
            rows, method = ask(path)
            assert (method["method"], method["step_count"], method["confidence"]) == ("graph", 32, "high")
            assert {row["graph_launches"] for row in only_steps(rows)} == {1}

    @pytest.mark.parametrize("method", ["auto", "sequence"])
    @pytest.mark.parametrize("name", SAMPLE_NAMES)
    def test_busy_time_equals_plain_loops_and_adds_up(self, name, method):
        path = SAMPLES / f"{name}.sqlite"
        busy = oracle.busy_intervals(oracle.read(path))
        assert len(busy) == 1
        (intervals,) = busy.values()
        for row in ask(path, step_method=method)[0]:
            busy_ns = sum(max(0, min(end, row["end_ns"]) - max(start, row["start_ns"])) for start, end in intervals)
            assert (row["gpu_busy_ns"], row["gpu_idle_ns"]) == (busy_ns, row["duration_ns"] - busy_ns)

    @pytest.mark.parametrize("name", SAMPLE_NAMES)
    def test_calls_belong_to_the_step_in_which_they_begin(self, name):
        path = SAMPLES / f"{name}.sqlite"
        calls = oracle.outer_api_calls(oracle.read(path))
        for row in ask(path)[0]:
            calls_inside = [call for call in calls if row["host_start_ns"] <= call["start"] < row["host_end_ns"]]
            assert row["api_ns"] == sum(map(oracle.duration, calls_inside))
            parts = ("launch", "sync", "copy", "alloc", "other")
            assert row["api_ns"] == sum(row[f"api_{part}_ns"] for part in parts)
            assert row["sync_calls"] == sum(bool(oracle.HOST_WAIT.match(call["name"])) for call in calls_inside)
            assert row["mallocs"] == sum(bool(oracle.ALLOCATION.match(call["name"])) for call in calls_inside)

    def test_churn_has_its_20_steps(self, sample):
        rows, method = ask(sample("churn"))
        assert (method["method"], method["pattern"], method["step_count"]) == ("sequence", "after each D2H copy", 20)
        assert {row["kernels"] for row in rows} == {25}

    @pytest.mark.parametrize("name", ["zoo_a.25", "decode_metrics.25"])
    def test_an_honest_answer_where_nothing_repeats(self, shared, name):
        rows, method = ask(shared / "traces" / f"{name}.sqlite")
        assert (method["method"], len(only_steps(rows))) == ((None, 0) if name == "zoo_a.25" else ("nvtx", 16))

    def test_traces_of_others(self, shared):
        for path in sorted((shared / "foreign").glob("*.sqlite")):
            for row in ask(path)[0]:
                assert row["gpu_busy_ns"] + row["gpu_idle_ns"] == row["duration_ns"] > 0


@pytest.mark.slow
@settings(max_examples=6)
@given(
    steps=st.integers(3, 12), layers=st.integers(0, 6), reads=st.booleans(),
    extra=st.lists(st.integers(0, 11), max_size=2),
)  # fmt: skip
def test_any_loop_is_found_by_its_sequence(steps, layers, reads, extra, tmp_path_factory):
    """Some layers between some operations of the step's own; now and then a kernel more."""
    assume(steps - len({step for step in extra if step < steps}) >= 3)  # three equal iterations make a loop
    trace = Trace()
    host = trace.thread()
    for step in range(steps):
        for number in range(3):
            host.launch(f"own{number}", runs=4_000)
        for _ in range(layers):
            host.launch("norm", runs=1_000).launch("gemm", runs=3_000).launch("act", runs=1_000)
        if step in extra and layers > 2:
            host.launch("more", runs=500)
        if reads:
            host.copy("D2H", 8, blocking=True)
        host.idle(20_000)
    path = trace.write(tmp_path_factory.mktemp("loop") / "trace.sqlite")
    rows, method = ask(path)
    assert (method["method"], len(only_steps(rows))) == ("sequence", steps)
    assert sum(row["kernels"] for row in rows) == len(trace.rows[oracle.KERNEL])


class TestOptions:
    @pytest.mark.parametrize(
        "options",
        [
            {"tokens": 4, "batch": 2},
            {"tokens": 4, "tokens_per_step": 2},
            {"step_method": "graph", "step_range": "x"},
            {"step_method": "count"},
            {"step_method": "magic"},
            {"tokens": 0},
        ],
    )
    def test_what_contradicts_itself_is_refused(self, sample, options):
        with pytest.raises(UsageError):
            ask(sample("churn"), **options)

    def test_reports_that_know_no_steps_do_not_take_them(self, sample):
        with open_trace(sample("churn")) as trace, pytest.raises(UsageError, match="step_method"):
            trace.answer("top", step_method="nvtx")

    def test_sql_can_ask_for_steps(self, sample):
        with open_trace(sample("decode_eager")) as trace:
            assert trace.sql("SELECT count(step) FROM steps").item() == 32
            assert trace.sql("SELECT bool_and(busy_ns + idle_ns = end_ns - start_ns) FROM step_gpus").item()

    @pytest.mark.slow
    def test_each_question_has_its_own_options(self, sample):
        with open_trace(sample("decode_eager")) as trace:
            first = trace.run("steps", step_method="sequence")
            second = trace.run("steps")
            assert (len(first), len(second)) == (33, 33)
            assert first["start_ns"].to_list() != second["start_ns"].to_list()


def test_a_trace_without_gpu_work_has_no_steps(tmp_path):
    trace = Trace()
    trace.thread().call("cudaGetDevice")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        answer = session.answer("steps")
        assert (answer.row_count, answer.notes) == (0, ())
        assert "no GPU work" in answer.empty


class TestLoopsOfVaryingLength:
    """A solver: each step has 3 to 12 iterations of an inner loop."""

    @staticmethod
    def solver(steps):
        lengths = [3, 12, 7, 5, 10, 4, 11, 8, 3, 9, 6, 12, 4, 10] * 3

        def body(loop, number):
            loop.launch("assemble(double *)", 60_000)
            for _ in range(lengths[number]):
                loop.launch("spmv(double *)", 20_000)
                loop.launch("dot(double *)", 6_000)
                loop.copy("D2H", 8, 1_500, blocking=True)
            loop.launch("update(double *)", 40_000)

        return run_steps(body, steps=steps)

    @pytest.mark.parametrize(("steps", "count"), [(40, 40), (8, 0)])
    def test_the_outer_loop_is_the_step_if_it_has_many_iterations(self, tmp_path, steps, count):
        program = self.solver(steps)
        with open_trace(program.write(tmp_path / "trace.sqlite")) as session:
            rows = [row for row in session.steps().to_dicts() if row["step"] is not None]
        assert len(rows) == count
        assert [row["start_ns"] for row in rows] == [step.start_ns for step in program.steps[:count]]

    def test_a_regular_loop_comes_first(self):
        row = {
            "loop": "1",
            "parent": None,
            "depth": 0,
            "iterations": 20,
            "gpu_share": 0.6,
            "launches": 5,
            "launch_share": 0.5,
            "graph_share": 0.0,
        }
        varying = SimpleNamespace(**row, regular_share=0.2, structure_share=1.0)
        regular = SimpleNamespace(**{**row, "gpu_share": 0.4}, regular_share=1.0, structure_share=1.0)
        other = SimpleNamespace(**row, regular_share=0.2, structure_share=0.5)
        assert choose_loop([varying, regular], "auto") is regular
        assert choose_loop([other, varying], "auto") is varying
        assert choose_loop([other], "auto") is None


def test_a_prefill_that_differs_from_its_range_says_so(sample):
    with open_trace(sample("decode_eager")) as trace:
        (note,) = trace.answer("steps").notes_named("left_out")
        assert note.endswith("left out: 1 prefill with all work before the steps (its range alone: 3.3 ms, see phases)")
        (note,) = trace.answer("per-token").notes_named("steady")
        assert "all rows are of these, tokens/s too" in note
