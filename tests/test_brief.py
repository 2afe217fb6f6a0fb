"""The brief: its length, its numbers against those of reports and of plain loops, and what must be on it."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from command_line import REPOSITORY, run
from opening import only_rules, open_trace
from real_traces import REAL, path_of
from sweeps import sweep
from synthetic import Trace

from nsys_insight.diagnose.bounded_text import write_short_diagnosis
from nsys_insight.diagnose.brief import read_brief
from nsys_insight.diagnose.brief_operations import Operation, title_operation
from nsys_insight.diagnose.brief_text import write_brief, write_page
from nsys_insight.packs.step_options import AUTO
from nsys_insight.text.operation_names import shorten_operation

SAMPLE = REPOSITORY / "sample_traces" / "churn.sqlite"
RANKS = sorted((REPOSITORY.parent / "shared" / "traces" / "ranks").glob("*.sqlite"))


@pytest.fixture(scope="module")
def churn():
    with open_trace(SAMPLE) as trace:
        yield read_brief(trace, AUTO)


# With all rules: a launch-bound loop, one that waits and copies, and a foreign program.
DIAGNOSED = ("decode_eager", "churn", "mordred.nsys2021_2")


@pytest.mark.parametrize(
    "path",
    [
        *(path for path in map(path_of, REAL) if path.stem in DIAGNOSED),
        *sweep(path for path in map(path_of, REAL) if path.stem not in DIAGNOSED),
    ],
    ids=lambda path: path.stem,
)
def test_it_has_at_most_2000_characters_and_the_diagnosis_at_most_3000(path):
    with open_trace(path) as trace:
        brief = read_brief(trace, AUTO)
    text = write_brief(brief)
    assert 1_000 < len(text) <= (2_600 if brief.devices else 2_000)
    assert len(write_brief(brief, 600)) <= 600
    assert len(write_short_diagnosis(brief.diagnosis)) <= 3_000
    assert all(line == line.rstrip() for line in text.splitlines())  # no padding


@pytest.mark.parametrize("path", REAL, ids=lambda case: path_of(case).stem)
class TestRealTraces:
    def test_its_numbers_are_those_of_the_reports(self, path):
        with open_trace(path) as trace, only_rules():
            brief = read_brief(trace, AUTO)
            budget = {row["metric"]: row["per_step"] for row in trace.dicts(PER_STEP)}
            host, info = trace.answer("host").dicts(), trace.answer("info").dicts()
            api_ns = trace.answer("api").dicts()
        assert brief.host == host
        assert brief.info == info
        calls = Counter()
        for row in brief.operations:
            calls[row["kind"]] += row["calls"]
        if not budget:
            assert sum(row["time_ns"] for row in brief.calls) == pytest.approx(sum(row["total_ns"] for row in api_ns))
            return
        if budget["kernels"] is not None:
            assert calls["kernel"] == pytest.approx(budget["kernels"])
            times = sum(row["time_ns"] for row in brief.operations if row["kind"] == "kernel")
            assert times == pytest.approx(budget["kernel_ns"])
        for kind in ("h2d", "d2h"):
            rows = [row for row in brief.operations if row["name"] == f"{kind.upper()} copy"]
            assert sum(row["calls"] for row in rows) == pytest.approx(budget[f"{kind}_copies"])
            assert sum(row["calls"] * row["size_bytes"] for row in rows) == pytest.approx(budget[f"{kind}_bytes"])
        launches = [row for row in brief.calls if row["call_group"] in ("launch", "graph launch")]
        assert sum(row["calls"] for row in launches) == pytest.approx(budget["launch_calls"])
        assert sum(row["time_ns"] for row in brief.calls) == pytest.approx(budget["api_ns"])

    def test_the_idle_time_before_operations_is_at_most_that_of_the_steps(self, path):
        with open_trace(path) as trace, only_rules():
            brief = read_brief(trace, AUTO)
        before_ns = sum(row["idle_before_ns"] for row in brief.operations)
        idle_ns = brief.diagnosis.wall_ns * (1 - brief.diagnosis.busy_pct / 100) * max(len(brief.devices), 1)
        assert before_ns <= 1.001 * idle_ns + 1_000


PER_STEP = """
SELECT metric, avg(value) / any_value(m.tokens_per_step) AS per_step
FROM step_metrics, step_method AS m WHERE kind <> 'mean' GROUP BY metric"""


@pytest.fixture(scope="module")
def cleared(tmp_path_factory):
    """Six steps: 20 memsets, a kernel with much shared memory on another stream, a wait for a read-back."""
    program = Trace()
    program.gpu()
    host = program.thread()
    for _ in range(6):
        for _ in range(20):
            host.memset(4_096, runs=1_500, api=2_000)
        host.launch(
            "smooth(float *)", runs=9_000, grid=(1_000, 1, 1), block=(256, 1, 1), dynamic_shared=184_320, stream=13
        )
        host.copy("D2H", 4, runs=1_000, target="pageable", blocking=True)
        host.idle(30_000)
    path = tmp_path_factory.mktemp("brief") / "cleared.sqlite"
    with open_trace(program.write(path)) as trace, only_rules():
        brief = read_brief(trace, AUTO)
    return brief, program


class TestPlantedProgram:
    def test_operations_of_a_step_are_those_of_the_program(self, cleared):
        brief, program = cleared
        steps = brief.diagnosis.steps["steady_count"]
        assert steps >= 4
        operations = {row["name"]: row for row in brief.operations}
        assert set(operations) == {"memset", "smooth(float *)", "D2H copy"}
        memset, kernel, copy = (operations[name] for name in ("memset", "smooth(float *)", "D2H copy"))
        assert (memset["calls"], memset["avg_ns"], memset["size_bytes"]) == (20, 1_500, 4_096)
        assert (kernel["grid"], kernel["block"], kernel["shared_bytes"]) == ("1000x1x1", "256x1x1", 184_320)
        assert (copy["source_memory"], copy["target_memory"], copy["calls"]) == ("device", "pageable", 1)
        assert len(program.rows["CUPTI_ACTIVITY_KIND_MEMSET"]) == 120

    def test_idle_time_is_before_the_operation_that_ends_it(self, cleared):
        brief, program = cleared
        tables = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("MEMSET", "KERNEL", "MEMCPY")]
        rows = sorted((row["start"], row["end"], table) for table in tables for row in program.rows[table])
        (first, last), running_end = SLICE_OF_STEPS, 0
        idle_ns = Counter()
        for number, (start, end, table) in enumerate(rows):
            if first * 22 < number < last * 22:  # 22 operations in a step
                idle_ns[table] += max(start - running_end, 0)
            running_end = max(running_end, end)
        before = {row["kind"]: row["idle_before_ns"] for row in brief.operations}
        # The first memset of a step has the idle time at the end of the step before it.
        assert before["memset"] > 19 * 500
        assert before["kernel"] == pytest.approx(idle_ns[tables[1]] / (last - first), abs=1_000)

    def test_the_page_has_the_evidence(self, cleared):
        brief, _ = cleared
        text = write_brief(brief)
        assert re.search(r"^ 20 \S 1.5 µs, .*%, idle .*, memset, 4.00 KiB device", text, re.MULTILINE)
        assert re.search(r"^ 1 \S 9 µs, .*smooth, 1000 \S 256, 180.0 KiB shared memory per block", text, re.MULTILINE)
        assert re.search(r"cudaMemcpy .*, waits for D2H copy of 4 B", text)
        assert "[20 \N{MULTIPLICATION SIGN} memset, smooth, D2H copy]" in text
        page = write_page(brief, 80)
        assert max(map(len, page.splitlines())) <= 80
        assert {"memset", "smooth"} <= set(page.split())

    def test_json_has_the_operations_as_rows(self, cleared):
        brief, _ = cleared
        answer = brief.answer()
        assert answer.dicts() == brief.operations
        assert {"verdict", "findings", "calls", "loops", "nvtx"} <= set(answer.summary)


SLICE_OF_STEPS = (1, 5)  # steps without the first and the last


def test_without_steps_all_of_the_trace_is_counted(tmp_path):
    program = Trace()
    host = program.thread()
    for number in range(7):
        host.launch(f"kernel_{number}(int)", runs=1_000 * (number + 1))
        host.idle(1_000 * (7 - number) ** 2)
    with open_trace(program.write(tmp_path / "trace.sqlite")) as trace, only_rules():
        brief = read_brief(trace, AUTO)
    assert [(row["calls"], row["time_ns"]) for row in brief.operations] == [(1, 1_000 * n) for n in range(7, 0, -1)]
    assert "operations of the entire trace: 7 kernels, 28 µs" in write_brief(brief)


@pytest.mark.parametrize(
    ("name", "provenance", "short"),
    [
        ("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN", "cuBLAS", "cuBLAS nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN"),
        (
            "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>>(int, T2)",
            "PyTorch native",
            "PyTorch elementwise add bf16",
        ),
        (
            "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0",
            "cuDNN",
            "cudnn_sdpa_sm90_flash_fprop_wgmma_f16_64x128x64",
        ),
        ("void gemv2T_kernel_val<int, int, double, double>(T1)", "cuBLAS", "cuBLAS gemv2T_kernel_val f64"),
        ("D2H copy", None, "D2H copy"),
    ],
)
def test_a_short_name_keeps_library_operation_type_and_tile(name, provenance, short):
    assert shorten_operation(name, provenance) == short


@pytest.mark.parametrize(
    ("construct", "name", "title"),
    [
        ("gather of rows", "PyTorch vectorized_gather_kernel", "gather of rows: PyTorch vectorized_gather_kernel"),
        ("PyTorch elementwise operation", "PyTorch elementwise Mul f32", "PyTorch elementwise Mul f32"),
        ("CuPy copy", "cupy_copy__float32_float32", "cupy_copy__float32_float32"),
        (None, "solve", "solve"),
    ],
)
def test_an_operation_has_the_title_of_its_construct_unless_its_name_says_it(construct, name, title):
    operation = Operation(name, 1.0, 1_000.0, 0.0, {"construct": construct}, 1, None)
    assert title_operation(operation) == title


def test_a_short_name_has_no_control_characters_and_fits():
    assert shorten_operation("a\x1b[31m" + "b" * 500, None, 20) == shorten_operation("a\x1b[31m" + "b" * 500, None, 20)
    assert "\x1b" not in shorten_operation("a\x1b[31mb")
    assert len(shorten_operation("x" * 500, "cuBLAS", 20)) == 20


class TestCommand:
    def test_a_trace_without_a_command_is_briefed(self):
        bare, brief = run(SAMPLE), run("brief", SAMPLE)
        assert bare.returncode == 0
        assert bare.stdout == brief.stdout
        assert brief.stdout.startswith("churn.sqlite: allocation-bound")
        assert run(__file__).returncode == 2

    def test_json_is_raw(self, churn):
        answer = json.loads(run("brief", SAMPLE, "--format", "json").stdout)
        assert answer["report"] == "brief"
        assert answer["rows"] == churn.operations
        assert answer["summary"]["calls"] == churn.calls

    def test_a_budget_cuts_the_least_important_lines(self, churn):
        short = run("brief", SAMPLE, "--budget", "700").stdout
        assert len(short) <= 700
        assert set(short.splitlines()[:1]) <= set(write_brief(churn).splitlines())
        assert len(write_brief(churn, 20_000)) > len(write_brief(churn))

    def test_a_diagnosis_for_an_agent_is_short(self):
        result = run("diagnose", SAMPLE, "--template", "agent")
        assert result.returncode == 0
        assert 1_000 < len(result.stdout) <= 3_000
        assert "fix: Allocate once before the loop" in result.stdout
        assert "choose one of" in run("diagnose", SAMPLE, "--template", "none").stderr

    def test_results_of_several_queries_say_which_query_they_are_of(self):
        result = run("sql", SAMPLE, "SELECT 1 AS a WHERE false; SELECT count(*) AS b FROM memsets")
        headings = re.findall(r"^Query .*", result.stdout, re.MULTILINE)
        assert headings == [
            "Query 1 of 2: SELECT 1 AS a WHERE false",
            "Query 2 of 2: SELECT count(*) AS b FROM memsets",
        ]
        assert "Query" not in run("sql", SAMPLE, "SELECT 1 AS a").stdout

    def test_views_with_columns_fit_into_a_budget(self):
        text = run("schema", "--budget", "3000").stdout
        assert len(text) <= 3_000
        assert "grid_x/_y/_z" in text
        assert re.search(r"^Others: .*, wall$", text, re.MULTILINE)


@pytest.mark.sweep
@pytest.mark.parametrize("path", RANKS, ids=lambda path: path.stem)
def test_ranks_have_their_own_lines(path):
    with open_trace(path) as trace:
        assert len(write_brief(read_brief(trace, AUTO))) <= 2_600


def test_findings_say_which_gpus_they_are_about():
    with open_trace(SAMPLE) as trace:
        answer = trace.diagnose().answer()
    assert {row["devices"] for row in answer.dicts()} == {"0"}
