"""`ncu plan` announces the launches that ncu will count: checked by loops, and by what ncu captured."""

from __future__ import annotations

import csv
import json
import re
import shlex
import sqlite3
from pathlib import Path

import pytest
import synthetic
from opening import open_trace

from nsys_insight.errors import TraceError, UsageError
from nsys_insight.ncu import plan

REPOSITORY = Path(__file__).parents[1]
SAMPLES = REPOSITORY / "sample_traces"
EVIDENCE = sorted((Path(__file__).parent / "data" / "ncu").glob("planned_*.csv"))


def parse_options(command):
    """Return the options of a command as a dictionary. The program follows the last option."""
    values = {}
    words = iter(command[1:])
    for word in words:
        if not word.startswith("--"):
            break
        values[word] = True if word in ("--nvtx", "--force-overwrite") else next(words)
    return values


def filter_launches(trace, command):
    """Return the launches that pass the filters of a command, in launch order, by loops over the tables."""
    flags = parse_options(command)
    database = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
    strings = dict(database.execute("SELECT id, value FROM StringIds"))
    calls = {
        correlation: (thread, start)
        for correlation, thread, start in database.execute(
            "SELECT correlationId, globalTid, start FROM CUPTI_ACTIVITY_KIND_RUNTIME"
        )
    }
    name = flags.get("--nvtx-include", "").removesuffix("/")
    ranges = [
        (thread, start, end)
        for text, text_id, thread, start, end in database.execute(
            "SELECT text, textId, globalTid, start, end FROM NVTX_EVENTS WHERE eventType = 59"
        )
        if name and name == (text or strings.get(text_id))
    ] if name else []  # fmt: skip
    pattern = re.compile(flags["--kernel-name"].removeprefix("regex:"))
    launches = []
    for row in database.execute(
        """SELECT correlationId, start, shortName, demangledName, gridX, gridY, gridZ, blockX, blockY, blockZ
           FROM CUPTI_ACTIVITY_KIND_KERNEL"""
    ):
        thread, call_start = calls.get(row[0], (None, None))
        is_in_range = (
            any(thread == owner and start <= call_start < end for owner, start, end in ranges) if call_start else False
        )
        if pattern.search(strings[row[2]]) and (is_in_range or not name):
            launches.append((call_start or row[1], row[1], strings[row[2]], row[4:7], row[7:10]))
    return sorted(launches)


def base_name(name):
    return re.sub(r"^void |\w+::|<unnamed>::", "", name).partition("<")[0].partition("(")[0]


def select_captured_launches(trace, command):
    flags = parse_options(command)
    skip, count = int(flags["--launch-skip"]), int(flags["--launch-count"])
    return [launch[2:] for launch in filter_launches(trace, command)[skip : skip + count]]


CASES = [
    ("decode_eager", {}),
    ("decode_eager", {"top": 1, "nvtx": ""}),
    ("decode_eager", {"kernels": ("nvjet_sm90_tst_16x64",), "nvtx": ""}),
    ("decode_eager", {"top": 6, "nvtx": "prefill"}),
    ("decode_graph_node", {"top": 2}),
    ("churn", {"top": 4}),
    ("churn", {"kernels": ("rowsum",)}),
]


@pytest.mark.parametrize(("name", "plan_options"), CASES, ids=str)
def test_planned_launches_are_those_that_pass_the_filters_and_have_all_requested_kernels(name, plan_options):
    trace = SAMPLES / f"{name}.sqlite"
    with open_trace(trace) as session:
        capture_plan = plan.make(session, **plan_options)
        rows = capture_plan.answer.frame().to_dicts()
    expected = select_captured_launches(trace, capture_plan.build_command())
    assert [
        (
            base_name(row["name"]),
            row["grid"],
            row["block"],
        )
        for row in rows
    ] == [(short, "x".join(map(str, grid)), "x".join(map(str, block))) for short, grid, block in expected]
    assert [row["ncu_id"] for row in rows] == list(range(capture_plan.count))
    planned_names = {row["name"] for row in rows if row["planned"]}
    assert len(planned_names) == (
        len(plan_options["kernels"]) if "kernels" in plan_options else plan_options.get("top", 3)
    )
    assert not plan_options.get("kernels") or all(plan_options["kernels"][0] in kernel for kernel in planned_names)
    if plan_options.get("nvtx") is None:  # the launches are after the middle
        counted_launches = filter_launches(trace, capture_plan.build_command())
        assert int(parse_options(capture_plan.build_command())["--launch-skip"]) >= 0.4 * len(counted_launches)


def test_the_command_follows_the_captured_one():
    with open_trace(SAMPLES / "decode_eager.sqlite") as session:
        command = plan.make(session).build_command()
    assert command[0] == "ncu"
    assert command[-9:] == ["--layers", "4", "--hidden", "512", "--heads", "8", "--profile-api", "--tokens", "32"]
    flags = parse_options(command)
    assert flags["--target-processes"] == "all"
    assert flags["--clock-control"] == "none"
    assert flags["--profile-from-start"] == "off"  # the program calls cudaProfilerStart
    assert flags["--nvtx-include"] == "decode_step/"
    assert flags["--kernel-name-base"] == "function"
    assert "LD_LIBRARY_PATH" not in " ".join(command)


def test_a_program_without_profiler_calls_is_counted_from_its_start():
    with open_trace(SAMPLES / "churn.sqlite") as session:
        command = plan.make(session).build_command()
    assert command[-2:] == ["./churn", "20"]
    assert not {"--profile-from-start", "--nvtx", "--graph-profiling"} & set(parse_options(command))


def test_kernels_of_graphs_are_profiled_by_node():
    with open_trace(SAMPLES / "decode_graph_node.sqlite") as session:
        assert parse_options(plan.make(session).build_command())["--graph-profiling"] == "node"


@pytest.mark.slow
def test_graphs_that_hide_kernels_are_noted():
    with open_trace(SAMPLES / "decode_graph_whole.sqlite") as session:
        assert any("32 CUDA graphs ran as a whole" in note for note in plan.make(session).notes)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "sections"), [(1, "full"), (11, "detailed"), (60, "basic")])
def test_the_section_set_depends_on_the_number_of_launches(tmp_path, count, sections):
    trace = synthetic.Trace()
    thread = trace.thread()
    for _ in range(4):
        for name in ("a", "b"):
            thread.launch(name, runs=900_000)
            for number in range(count - 2):
                thread.launch("a", runs=10, grid=(number + 2, 1, 1))
    with open_trace(trace.write(tmp_path / "t.sqlite")) as session:
        capture_plan = plan.make(session, top=1 if count == 1 else 2)
    assert (capture_plan.count, capture_plan.sections) == (count, sections)


@pytest.mark.slow
def test_names_are_escaped_for_the_regular_expression_and_for_the_shell(tmp_path):
    trace = synthetic.Trace()
    trace.thread().launch("odd$(rm -rf ~)'kernel", runs=1000)
    with open_trace(trace.write(tmp_path / "t.sqlite")) as session:
        capture_plan = plan.make(session)
    pattern = parse_options(capture_plan.build_command())["--kernel-name"].removeprefix("regex:")
    with open_trace(tmp_path / "t.sqlite") as session:
        (short,) = session.sql("SELECT DISTINCT short_name FROM kernels")["short_name"]
    assert re.fullmatch(pattern, short)
    assert shlex.split(plan.quote_command(capture_plan.build_command())) == capture_plan.build_command()


def test_launches_are_counted_per_process(tmp_path):
    trace = synthetic.Trace()
    first, second = trace.thread(pid=1), trace.thread(pid=2)
    for _ in range(6):
        first.launch("a", runs=1000)
        second.launch("a", runs=5000)
    with open_trace(trace.write(tmp_path / "t.sqlite")) as session:
        capture_plan = plan.make(session)
    assert capture_plan.answer is not None
    assert parse_options(capture_plan.build_command())["--launch-skip"] in ("2", "3")
    assert any("2 processes" in note and "process 2" in note for note in capture_plan.notes)


@pytest.mark.slow
def test_kernels_are_chosen_by_their_class():
    with open_trace(SAMPLES / "decode_eager.sqlite") as session:
        bound_by_kernel = {
            row["name"]: row["bound"] for row in session.scope(nvtx="decode_step").run("classify-kernels").to_dicts()
        }
        assert set(bound_by_kernel.values()) >= {"memory", "latency"}
        for bound in ("memory", "latency"):
            planned = plan.make(session, bound=bound, top=2).answer.frame().filter(planned=True)
            assert {bound_by_kernel[name] for name in planned["name"]} == {bound}
        with pytest.raises(UsageError, match="class is balanced"):
            plan.make(session, bound="balanced")
        with pytest.raises(UsageError, match="--bound"):
            plan.make(session, bound="slow")


def test_steps_are_found_without_ranges_and_launches_after_them_are_not_planned(tmp_path):
    """The trace is a loop of 20 steps, then more launches of the same kernel that belong to no step."""
    trace = synthetic.Trace()
    host = trace.thread()
    for _ in range(20):
        for name in ("norm", "gemm", "add"):
            host.launch(name, runs=50_000)
        host.idle(20_000)
    for _ in range(25):
        host.launch("gemm", runs=5_000)
    with open_trace(trace.write(tmp_path / "t.sqlite")) as session:
        steady_count = session.sql("SELECT count(*) AS n FROM steps WHERE phase = 'steady'")["n"][0]
        capture_plan = plan.make(session, kernels=("gemm",))
    assert steady_count >= 15
    assert (steady_count - 1) // 2 <= int(parse_options(capture_plan.build_command())["--launch-skip"]) < 20


def trace_with_kernels(*names):
    trace = synthetic.Trace()
    host = trace.thread()
    for _ in range(4):
        for name in names:
            host.launch(f"{name}(int)", runs=900_000 if name.startswith("nccl") else 50_000)
    return trace


@pytest.mark.slow
def test_communication_kernels_are_planned_only_on_request_and_with_a_warning(tmp_path):
    path = trace_with_kernels("gemm", "ncclDevKernel_AllReduce_Sum_f16_RING_LL", "norm").write(tmp_path / "t.sqlite")
    with open_trace(path) as trace:
        capture_plan = plan.make(trace, nvtx="")
        assert parse_options(capture_plan.build_command())["--kernel-name"] == "regex:^(gemm|norm)$"
        assert "deadlock" not in " ".join(capture_plan.notes)
        nccl_plan = plan.make(trace, kernels=("nccl",), nvtx="")
        assert "ncclDevKernel_AllReduce_Sum_f16_RING_LL" in parse_options(nccl_plan.build_command())["--kernel-name"]
        assert "waits for its peers forever (deadlock)" in " ".join(nccl_plan.notes)


def test_the_preparation_note_depends_on_the_kernel_implementation(tmp_path):
    expected_notes = {
        "_fwd_kernel_0d1d2d": "triton: clear the cache first, so that what runs is what was edited: rm -rf",
        "triton_red_fused_sum_1": "inductor: clear the cache first: rm -rf ${TORCHINDUCTOR_CACHE_DIR",
        "cutlass_80_tensorop_s16816gemm_f16_128x128_32x4_nn_align8": "cutlass: compile with -lineinfo",
        "rowsum": "native: compile with -lineinfo (not -G)",
        "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT": None,
    }
    kernel_trace = synthetic.Trace()
    host = kernel_trace.thread()
    for name in expected_notes:
        host.launch(name, runs=1000)
    with open_trace(kernel_trace.write(tmp_path / "t.sqlite")) as trace:
        for name, expected_note in expected_notes.items():
            notes = [note for note in plan.make(trace, nvtx="", kernels=(name,)).notes if "all of the kind" in note]
            assert [note[: len(expected_note)] for note in notes] == [expected_note] if expected_note else not notes


def test_a_trace_that_only_communicates_has_no_plan(tmp_path):
    path = trace_with_kernels("ncclDevKernel_AllReduce_Sum_f16_RING_LL").write(tmp_path / "t.sqlite")
    with open_trace(path) as trace, pytest.raises(TraceError, match="communicate"):
        plan.make(trace, nvtx="")


def test_a_trace_without_kernels_and_an_unknown_name_are_errors(tmp_path):
    trace = synthetic.Trace()
    trace.thread().call("cudaMalloc_v3020")
    with open_trace(trace.write(tmp_path / "t.sqlite")) as session, pytest.raises(TraceError, match="no kernels"):
        plan.make(session)
    with open_trace(SAMPLES / "churn.sqlite") as session:
        with pytest.raises(UsageError, match="contains 'nothing'"):
            plan.make(session, kernels=("nothing",))
        with pytest.raises(UsageError, match="--set"):
            plan.make(session, sections="everything")


TRACES = {"planned_churn": "churn", "planned_decode_graph": "decode_graph_node", "planned_decode": "decode_eager"}


@pytest.mark.parametrize("file", EVIDENCE, ids=lambda file: file.stem)
def test_ncu_captured_the_planned_launches(file):
    """Made on a GPU with the real ncu: the first line of each file is the command that was run."""
    first, *lines = file.read_text(encoding="utf-8").splitlines()
    command = shlex.split(first.removeprefix("==PLAN== "))
    trace = next(name for stem, name in TRACES.items() if file.stem.startswith(stem))
    rows = [row for row in csv.DictReader(lines) if row["ID"]]
    got = [
        (base_name(row["Kernel Name"]),
         tuple(json.loads(row["Grid Size"].replace("(", "[").replace(")", "]"))),
         tuple(json.loads(row["Block Size"].replace("(", "[").replace(")", "]"))))
        for row in rows
    ]  # fmt: skip
    assert got == select_captured_launches(SAMPLES / f"{trace}.sqlite", command)
