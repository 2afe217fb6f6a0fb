"""The launches that `ncu plan` announces are those that ncu will count: checked by loops, and by what ncu captured."""

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


def options(command):
    """The options of a command as a dictionary; what follows the last one is the program."""
    found = {}
    words = iter(command[1:])
    for word in words:
        if not word.startswith("--"):
            break
        found[word] = True if word in ("--nvtx", "--force-overwrite") else next(words)
    return found


def counted(trace, command):
    """The launches that the command's filters let through, in launch order, by loops over the tables."""
    given = options(command)
    database = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
    strings = dict(database.execute("SELECT id, value FROM StringIds"))
    calls = {
        correlation: (thread, start)
        for correlation, thread, start in database.execute(
            "SELECT correlationId, globalTid, start FROM CUPTI_ACTIVITY_KIND_RUNTIME"
        )
    }
    name = given.get("--nvtx-include", "").removesuffix("/")
    ranges = [
        (thread, start, end)
        for text, text_id, thread, start, end in database.execute(
            "SELECT text, textId, globalTid, start, end FROM NVTX_EVENTS WHERE eventType = 59"
        )
        if name and name == (text or strings.get(text_id))
    ] if name else []  # fmt: skip
    pattern = re.compile(given["--kernel-name"].removeprefix("regex:"))
    launches = []
    for row in database.execute(
        """SELECT correlationId, start, shortName, demangledName, gridX, gridY, gridZ, blockX, blockY, blockZ
           FROM CUPTI_ACTIVITY_KIND_KERNEL"""
    ):
        thread, when = calls.get(row[0], (None, None))
        inside = any(thread == owner and start <= when < end for owner, start, end in ranges) if when else False
        if pattern.search(strings[row[2]]) and (inside or not name):
            launches.append((when or row[1], row[1], strings[row[2]], row[4:7], row[7:10]))
    return sorted(launches)


def base_name(name):
    return re.sub(r"^void |\w+::|<unnamed>::", "", name).partition("<")[0].partition("(")[0]


def captured(trace, command):
    given = options(command)
    skip, count = int(given["--launch-skip"]), int(given["--launch-count"])
    return [launch[2:] for launch in counted(trace, command)[skip : skip + count]]


CASES = [
    ("decode_eager", {}),
    ("decode_eager", {"top": 1, "nvtx": ""}),
    ("decode_eager", {"kernels": ("nvjet_sm90_tst_16x64",), "nvtx": ""}),
    ("decode_eager", {"top": 6, "nvtx": "prefill"}),
    ("decode_graph_node", {"top": 2}),
    ("churn", {"top": 4}),
    ("churn", {"kernels": ("rowsum",)}),
]


@pytest.mark.parametrize(("name", "asked"), CASES, ids=str)
def test_what_is_planned_is_what_the_filters_let_through(name, asked):
    trace = SAMPLES / f"{name}.sqlite"
    with open_trace(trace) as opened:
        made = plan.make(opened, **asked)
        rows = made.answer.frame().to_dicts()
    expected = captured(trace, made.command())
    assert [
        (
            base_name(row["name"]),
            row["grid"],
            row["block"],
        )
        for row in rows
    ] == [(short, "x".join(map(str, grid)), "x".join(map(str, block))) for short, grid, block in expected]
    assert [row["ncu_id"] for row in rows] == list(range(made.count))
    assert sum(row["planned"] for row in rows) >= len({row["name"] for row in rows if row["planned"]}) > 0


@pytest.mark.parametrize(("name", "asked"), CASES, ids=str)
def test_all_kernels_asked_for_are_in_it_past_the_middle(name, asked):
    with open_trace(SAMPLES / f"{name}.sqlite") as opened:
        made = plan.make(opened, **asked)
        planned = made.answer.frame().filter(planned=True)
    assert planned["name"].n_unique() == (len(asked["kernels"]) if "kernels" in asked else asked.get("top", 3))
    assert not asked.get("kernels") or all(asked["kernels"][0] in kernel for kernel in planned["name"])
    if asked.get("nvtx") is None:
        counted_launches = counted(SAMPLES / f"{name}.sqlite", made.command())
        assert int(options(made.command())["--launch-skip"]) >= 0.4 * len(counted_launches)


def test_the_command_is_what_the_capture_says():
    with open_trace(SAMPLES / "decode_eager.sqlite") as opened:
        command = plan.make(opened).command()
    assert command[0] == "ncu"
    assert command[-9:] == ["--layers", "4", "--hidden", "512", "--heads", "8", "--profile-api", "--tokens", "32"]
    given = options(command)
    assert given["--target-processes"] == "all"
    assert given["--clock-control"] == "none"
    assert given["--profile-from-start"] == "off"  # the program calls cudaProfilerStart
    assert given["--nvtx-include"] == "decode_step/"
    assert given["--kernel-name-base"] == "function"
    assert "LD_LIBRARY_PATH" not in " ".join(command)


def test_a_program_without_profiler_calls_is_counted_from_its_start():
    with open_trace(SAMPLES / "churn.sqlite") as opened:
        command = plan.make(opened).command()
    assert command[-2:] == ["./churn", "20"]
    assert not {"--profile-from-start", "--nvtx", "--graph-profiling"} & set(options(command))


def test_kernels_of_graphs_are_profiled_by_node():
    with open_trace(SAMPLES / "decode_graph_node.sqlite") as opened:
        assert options(plan.make(opened).command())["--graph-profiling"] == "node"


@pytest.mark.slow
def test_graphs_that_hide_kernels_are_told():
    with open_trace(SAMPLES / "decode_graph_whole.sqlite") as opened:
        assert any("32 CUDA graphs ran as a whole" in note for note in plan.make(opened).notes)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "sections"), [(1, "full"), (11, "detailed"), (60, "basic")])
def test_the_section_set_is_what_the_number_of_launches_allows(tmp_path, count, sections):
    trace = synthetic.Trace()
    thread = trace.thread()
    for _ in range(4):
        for name in ("a", "b"):
            thread.launch(name, runs=900_000)
            for number in range(count - 2):
                thread.launch("a", runs=10, grid=(number + 2, 1, 1))
    with open_trace(trace.write(tmp_path / "t.sqlite")) as opened:
        made = plan.make(opened, top=1 if count == 1 else 2)
    assert (made.count, made.sections) == (count, sections)


@pytest.mark.slow
def test_names_are_escaped_for_the_regular_expression_and_for_the_shell(tmp_path):
    trace = synthetic.Trace()
    trace.thread().launch("odd$(rm -rf ~)'kernel", runs=1000)
    with open_trace(trace.write(tmp_path / "t.sqlite")) as opened:
        made = plan.make(opened)
    pattern = options(made.command())["--kernel-name"].removeprefix("regex:")
    with open_trace(tmp_path / "t.sqlite") as opened:
        (short,) = opened.sql("SELECT DISTINCT short_name FROM kernels")["short_name"]
    assert re.fullmatch(pattern, short)
    assert shlex.split(plan.shell(made.command())) == made.command()


def test_each_process_is_counted_by_itself(tmp_path):
    trace = synthetic.Trace()
    first, second = trace.thread(pid=1), trace.thread(pid=2)
    for _ in range(6):
        first.launch("a", runs=1000)
        second.launch("a", runs=5000)
    with open_trace(trace.write(tmp_path / "t.sqlite")) as opened:
        made = plan.make(opened)
    assert made.answer is not None
    assert options(made.command())["--launch-skip"] in ("2", "3")
    assert any("2 processes" in note and "process 2" in note for note in made.notes)


@pytest.mark.slow
def test_kernels_are_chosen_by_their_class():
    with open_trace(SAMPLES / "decode_eager.sqlite") as opened:
        of = {row["name"]: row["bound"] for row in opened.scope(nvtx="decode_step").run("classify-kernels").to_dicts()}
        assert set(of.values()) >= {"memory", "latency"}
        for bound in ("memory", "latency"):
            planned = plan.make(opened, bound=bound, top=2).answer.frame().filter(planned=True)
            assert {of[name] for name in planned["name"]} == {bound}
        with pytest.raises(UsageError, match="class is balanced"):
            plan.make(opened, bound="balanced")
        with pytest.raises(UsageError, match="--bound"):
            plan.make(opened, bound="slow")


def test_steps_without_ranges_are_told_and_the_prefill_after_them_is_not_taken(tmp_path):
    """A loop of 20 steps, then more launches of the same kernel that belong to no step."""
    trace = synthetic.Trace()
    host = trace.thread()
    for _ in range(20):
        for name in ("norm", "gemm", "add"):
            host.launch(name, runs=50_000)
        host.idle(20_000)
    for _ in range(25):
        host.launch("gemm", runs=5_000)
    with open_trace(trace.write(tmp_path / "t.sqlite")) as opened:
        steady = opened.sql("SELECT count(*) AS n FROM steps WHERE phase = 'steady'")["n"][0]
        made = plan.make(opened, kernels=("gemm",))
    assert steady >= 15
    assert (steady - 1) // 2 <= int(options(made.command())["--launch-skip"]) < 20


def reducing(*names):
    trace = synthetic.Trace()
    host = trace.thread()
    for _ in range(4):
        for name in names:
            host.launch(f"{name}(int)", runs=900_000 if name.startswith("nccl") else 50_000)
    return trace


@pytest.mark.slow
def test_kernels_that_communicate_are_not_planned_unless_asked_for_and_then_with_a_warning(tmp_path):
    path = reducing("gemm", "ncclDevKernel_AllReduce_Sum_f16_RING_LL", "norm").write(tmp_path / "t.sqlite")
    with open_trace(path) as trace:
        made = plan.make(trace, nvtx="")
        assert options(made.command())["--kernel-name"] == "regex:^(gemm|norm)$"
        assert "deadlock" not in " ".join(made.notes)
        asked = plan.make(trace, kernels=("nccl",), nvtx="")
        assert "ncclDevKernel_AllReduce_Sum_f16_RING_LL" in options(asked.command())["--kernel-name"]
        assert "waits for its peers forever (deadlock)" in " ".join(asked.notes)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("_fwd_kernel_0d1d2d", "triton: clear the cache first, so that what runs is what was edited: rm -rf"),
        ("triton_red_fused_sum_1", "inductor: clear the cache first: rm -rf ${TORCHINDUCTOR_CACHE_DIR"),
        ("cutlass_80_tensorop_s16816gemm_f16_128x128_32x4_nn_align8", "cutlass: compile with -lineinfo"),
        ("rowsum", "native: compile with -lineinfo (not -G)"),
        ("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", None),
    ],
)
def test_what_to_do_first_depends_on_who_made_the_kernel(tmp_path, name, said):
    made = synthetic.Trace()
    made.thread().launch(name, runs=1000)
    with open_trace(made.write(tmp_path / "t.sqlite")) as trace:
        notes = [note for note in plan.make(trace, nvtx="").notes if "all of the kind" in note]
    assert [note[: len(said)] for note in notes] == [said] if said else not notes


def test_a_trace_that_only_communicates_has_no_plan(tmp_path):
    path = reducing("ncclDevKernel_AllReduce_Sum_f16_RING_LL").write(tmp_path / "t.sqlite")
    with open_trace(path) as trace, pytest.raises(TraceError, match="communicate"):
        plan.make(trace, nvtx="")


def test_a_trace_without_kernels_and_a_name_that_is_not_there(tmp_path):
    trace = synthetic.Trace()
    trace.thread().call("cudaMalloc_v3020")
    with open_trace(trace.write(tmp_path / "t.sqlite")) as opened, pytest.raises(TraceError, match="no kernels"):
        plan.make(opened)
    with open_trace(SAMPLES / "churn.sqlite") as opened:
        with pytest.raises(UsageError, match="contains 'nothing'"):
            plan.make(opened, kernels=("nothing",))
        with pytest.raises(UsageError, match="--set"):
            plan.make(opened, sections="everything")


TRACES = {"planned_churn": "churn", "planned_decode_graph": "decode_graph_node", "planned_decode": "decode_eager"}


@pytest.mark.parametrize("file", EVIDENCE, ids=lambda file: file.stem)
def test_what_ncu_captured_is_what_was_planned(file):
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
    assert got == captured(SAMPLES / f"{trace}.sqlite", command)
