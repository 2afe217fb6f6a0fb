"""Callers of CUDA calls: the frame that names a call stack, and reports by caller."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections import defaultdict
from contextlib import closing
from importlib import import_module

import pytest
from opening import open_trace
from synthetic import Trace

import nsys_insight
from nsys_insight.facts import sync_callers
from nsys_insight.model.producers import facts_read
from nsys_insight.packs.library import built_in_packs
from tests.conftest import REPOSITORY

APP, TORCH, PYTHON = "/home/user/app", "/usr/lib/libtorch_cuda.so", "/usr/bin/python3.11"
MAIN = ("main", APP)
INTERPRETER = (("_PyEval_EvalFrameDefault", PYTHON), ("Py_BytesMain", PYTHON), ("__libc_start_main", "/lib/libc.so.6"))
ADD = (
    ("void at::native::gpu_kernel_impl<at::native::AddFunctor<float> >(at::TensorIteratorBase&)", TORCH),
    ("at::native::add_kernel(at::TensorIteratorBase&)", TORCH),
    ("at::_ops::add_Tensor::redispatch(c10::DispatchKeySet, at::Tensor const&)", TORCH),
    ("at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&)", TORCH),
)
CALLERS = {
    "aten::add_Tensor": (*ADD, *INTERPRETER),
    "forward (model.py)": (*ADD, *INTERPRETER, ("forward", "/home/user/model.py"), ("main", "/home/user/train.py")),
    "cublasGemmEx (libcublas.so.12)": (
        ("0x1", "/usr/lib/libcublasLt.so.12"), ("cublasLtMatmul", "/usr/lib/libcublasLt.so.12"),
        ("cublasGemmEx", "/usr/lib/libcublas.so.12"), ("layer(float*)", APP), MAIN,
    ),
    "at::native::copy_device_to_device": (
        ("at::native::copy_device_to_device(at::TensorIterator&, bool)", TORCH), ("c10::Dispatcher::call(int)", TORCH),
    ),
    "load<float>": (("cudaError cudaMalloc<float>(float**, unsigned long)", APP), ("cudaMalloc", APP)),
    "app::Buffer::grow (app)": (
        ("cudaMalloc", APP), ("void app::(anonymous namespace)::Buffer<float, 2>::grow(unsigned long)", APP), MAIN,
    ),
    "app (no symbol)": (("0x55d0", APP), ("__libc_start_main", "/lib/libc.so.6")),
    "_PyEval_EvalFrameDefault (python3.11)": INTERPRETER,
}  # fmt: skip
UNNAMED = {"load<float>"}  # its call stack has only wrappers of CUDA


@pytest.fixture(scope="module")
def write_once(tmp_path_factory):
    """Return a function that writes a trace once for each version of nsys."""
    folder = tmp_path_factory.mktemp("callers")

    def write_trace(make, version="2025.3"):
        path = folder / f"{make.__name__}.{version}.sqlite"
        return path if path.exists() else make().write(path, version=version)

    return write_trace


def make_each_caller():
    trace = Trace()
    host = trace.thread()
    for frames in CALLERS.values():
        with host.call_stack(*frames):
            host.launch("k", runs=1_000)
    return trace


def make_loop(times=4):
    """Make a loop in which one function reads back for two callers. Some calls of each kind have no backtrace."""
    trace = Trace()
    host = trace.thread()
    for _ in range(times):
        with host.nvtx("step"), host.call_stack(MAIN):
            host.malloc(1 << 20).call("cudaGetDevice")
            for caller, runs in (("train", 20_000), ("evaluate", 50_000)):
                with host.call_stack(("read_back", APP), (caller, APP)):
                    host.launch("k", runs=runs).copy("D2H", 64, blocking=True, target="pageable").idle(3_000)
            host.copy("H2D", 1 << 16, source="pageable").memset(64).sync("stream").free()
        host.launch("bare").idle(10_000)
    return trace


def make_one_iteration():
    return make_loop(times=1)


def make_loop_without_chains():
    trace = make_loop()
    del trace.rows["CUDA_CALLCHAINS"]
    for row in trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]:
        del row["callchainId"]
    return trace


def test_a_call_stack_is_named_after_the_innermost_user_frame(write_once):
    with open_trace(write_once(make_each_caller)) as trace:
        rows = trace.query(
            """SELECT p.name FROM api_calls LEFT JOIN call_places AS p USING (process_id, correlation_id)
               ORDER BY start_ns"""
        ).rows()
    assert [name for (name,) in rows] == [None if name in UNNAMED else name for name in CALLERS]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2025.3", "2022.2"])
def test_a_callee_of_two_callers_is_one_caller_and_two_stacks(write_once, version):
    with open_trace(write_once(make_loop, version)) as trace:
        by_caller = {(row["kind"], row["name"]): row for row in trace.answer("syncs", group_by="caller").dicts()}
        stacks = trace.answer("syncs", group_by="stack", stack=2).dicts()
    assert by_caller["D2H copy", "read_back (app)"]["calls"] == 8
    waits = {row["name"]: row["host_wait_ns"] for row in stacks if row["kind"] == "D2H copy"}
    assert waits.keys() == {"read_back (app) < train (app)", "read_back (app) < evaluate (app)"}
    assert sum(waits.values()) == by_caller["D2H copy", "read_back (app)"]["host_wait_ns"]
    assert waits["read_back (app) < evaluate (app)"] - waits["read_back (app) < train (app)"] == 4 * 30_000


SUMS = {
    "api": ("calls", "total_ns", "api_time_pct"),
    "syncs": ("calls", "host_wait_ns", "gpu_idle_ns"),
    "mallocs": ("calls", "total_ns", "gpu_idle_ns", "size_bytes"),
    "copies": ("calls", "total_ns", "size_bytes"),
    "launches": ("calls", "api_total_ns", "kernel_total_ns"),
    "gap-places": ("gaps", "total_ns", "idle_pct"),
    "gaps": ("gaps", "duration_ns", "idle_pct", "host_ns"),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", [make_loop, make_loop_without_chains])
@pytest.mark.parametrize("version", ["2025.3", "2022.2"])
def test_sums_over_callers_equal_ungrouped_sums(write_once, make, version):
    with open_trace(write_once(make, version)) as trace:
        for report, columns in SUMS.items():
            ungrouped, *grouped_answers = (
                trace.answer(report, **parameters).dicts()
                for parameters in ({}, {"group_by": "caller"}, {"group_by": "stack"})
            )
            for column in columns:
                total = pytest.approx(sum(row[column] for row in ungrouped), rel=1e-12)
                assert [sum(row[column] for row in rows) for rows in grouped_answers] == [total, total], (
                    report,
                    column,
                )


def test_calls_without_a_backtrace_have_a_row_and_a_note(write_once):
    with open_trace(write_once(make_loop)) as trace:
        answer = trace.answer("launches", group_by="caller")
        calls = {row["name"]: row["calls"] for row in answer.dicts()}
    assert calls == {"read_back (app)": 8, "(no backtrace)": 4}
    assert [note for note in answer.notes if "4 of 44 CUDA calls have no backtrace" in note]


PYTHON_LINES = [
    [("read_back", "/home/user/train.py", 57), ("<module>", "/home/user/train.py", 80)],
    [
        ("synchronize", "/venv/lib/python3.12/site-packages/torch/cuda/__init__.py", 1162),
        ("read_back", "/home/user/train.py", 58), ("<module>", "/home/user/train.py", 81),
    ],
]  # fmt: skip


def add_python_backtraces(path, chains, cut_bytes=0):
    """Add Python backtraces to the waits of a trace in turn, each shortened by `cut_bytes`."""
    with closing(sqlite3.connect(path)) as database, database:
        string_ids = dict(database.execute("SELECT value, id FROM StringIds"))

        def string_id(text):
            if text not in string_ids:
                string_ids[text] = max(string_ids.values()) + 1
                database.execute("INSERT INTO StringIds VALUES (?, ?)", (string_ids[text], text))
            return string_ids[text]

        waits = database.execute(
            """SELECT a.start, a.globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME AS a JOIN StringIds AS s ON s.id = a.nameId
               WHERE s.value LIKE '%Memcpy_v%' ORDER BY start"""
        ).fetchall()
        columns = "start, eventType, text, globalTid, domainId, binaryData"
        add = f"INSERT INTO NVTX_EVENTS ({columns}) VALUES (?, ?, ?, ?, 3, ?)"
        database.execute(add, (0, 75, "Python Backtrace on CUDA", waits[0][1], None))
        for index, (start, thread) in enumerate(waits):
            frames = b"".join(
                struct.pack(
                    "<QQI4s",
                    string_id(function.replace("<", "&lt;").replace(">", "&gt;")),
                    string_id(file),
                    line,
                    b"-pac",
                )
                for function, file, line in chains[index % len(chains)]
            )
            body = struct.pack("<QII", 1, 1, len(frames) // 24) + frames
            payload = struct.pack("<QQQQ", 1, 5, len(body), 32) + body
            database.execute(add, (start, 34, None, thread, payload[: len(payload) - cut_bytes]))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("use_cache", [False, True])
def test_python_backtraces_name_the_users_line(tmp_path, use_cache):
    path = add_python_backtraces(make_loop().write(tmp_path / "python.sqlite"), PYTHON_LINES)
    with nsys_insight.open(path, use_cache=use_cache) as trace:
        callers = {
            row["name"]: row["calls"]
            for row in trace.answer("syncs", group_by="caller").dicts()
            if row["kind"] == "D2H copy"
        }
        stacks = {row["name"] for row in trace.answer("syncs", group_by="stack").dicts() if row["kind"] == "D2H copy"}
    assert callers == {"read_back (train.py:57)": 4, "read_back (train.py:58)": 4}
    assert stacks == {
        "read_back (train.py:57) < <module> (train.py:80)", "read_back (train.py:58) < <module> (train.py:81)",
    }  # fmt: skip


@pytest.mark.slow
def test_a_truncated_python_backtrace_is_ignored(tmp_path):
    path = add_python_backtraces(make_loop().write(tmp_path / "cut.sqlite"), PYTHON_LINES, cut_bytes=5)
    with open_trace(path) as trace:
        callers = {row["name"] for row in trace.answer("syncs", group_by="caller").dicts() if row["kind"] == "D2H copy"}
    assert callers == {"read_back (app)"}


@pytest.mark.slow
def test_without_call_stacks_ranges_and_neighboring_calls_give_the_place(write_once):
    with open_trace(write_once(make_loop_without_chains)) as trace:
        answer = trace.answer("mallocs", group_by="caller")
        names, plain = {row["name"] for row in answer.dicts()}, trace.answer("mallocs")
    assert names == {
        "in step, before cudaGetDevice",
        "in step, after cudaLaunchKernel, before cudaGetDevice",
        "in step, after cudaStreamSynchronize, before cudaLaunchKernel",
    }
    assert [note for note in answer.notes if "--cudabacktrace=all" in note]
    assert not [note for note in plain.notes if "backtrace" in note]


@pytest.mark.slow
def test_backtraces_do_not_change_ungrouped_answers(write_once):
    for report in SUMS:
        with (
            open_trace(write_once(make_loop)) as with_backtraces,
            open_trace(write_once(make_loop_without_chains)) as without_backtraces,
        ):
            assert with_backtraces.answer(report).rows() == without_backtraces.answer(report).rows()


def test_calls_with_broken_or_empty_call_stacks_have_rows(tmp_path):
    trace = Trace()
    host = trace.thread()
    with host.call_stack(("[Broken backtraces]", "[Broken backtraces]")):
        host.launch("k")
    host.launch("k")
    trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]["callchainId"] = 99  # a call stack without frames
    with host.call_stack(MAIN):
        host.launch("k")
    with open_trace(trace.write(tmp_path / "broken.sqlite")) as broken:
        rows = broken.answer("launches", group_by="caller").dicts()
    assert {row["name"]: row["calls"] for row in rows} == {"(no backtrace)": 2, "main (app)": 1}


# Defects of a call stack: its frames as (depth, function, file), and the expected caller, which may be None. A number
# is a string id that the trace lacks.
UNKNOWN_ID = 1 << 30
DRIVER = (0, "0x1", "/usr/lib/libcuda.so.550")
BROKEN = {
    "frames are missing between": ([DRIVER, (7, "train", APP), (60, "main", APP)], "train (app)"),
    "the innermost frames are missing": ([(5, "train", APP), (6, "main", APP)], "train (app)"),
    "frames out of order": ([(2, "main", APP), (1, "train", APP), DRIVER], "train (app)"),
    "depths that cannot be": ([(-3, "train", APP), (1 << 40, "main", APP)], "train (app)"),
    "addresses without symbols": ([DRIVER, (1, "0x55d0", APP), (2, "0x55f8", APP)], "app (no symbol)"),
    "one symbol among addresses": ([(0, "0x55d0", APP), (1, "train", APP), (2, "0x55f8", APP)], "train (app)"),
    "a symbol that is not in the trace": ([(0, UNKNOWN_ID, APP)], "app (no symbol)"),
    "a module that is not in the trace": ([(0, "train", UNKNOWN_ID)], "train"),
    "a module without a name": ([(0, "train", "")], "train"),
    "neither of them in the trace": ([(0, UNKNOWN_ID, UNKNOWN_ID)], None),
    "an address in no module": ([(0, "0x55d0", "")], None),
    "only frames of CUDA": ([DRIVER, (1, "cudaLaunchKernel", "/usr/lib/libcudart.so.12")], None),
    "only what nsys says of it": ([(0, "[Max depth]", "[Max depth]")], None),
    "no frame at all": ([], None),
}


def test_broken_call_stacks_name_the_best_remaining_frame(tmp_path):
    trace = Trace()
    host = trace.thread()
    missing = []
    for number, (frames, _) in enumerate(BROKEN.values(), start=1):
        host.launch("k")
        trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]["callchainId"] = number
        for depth, symbol, module in frames:
            unresolved = 1 if str(symbol).startswith("0x") else None
            names = {"symbol": symbol, "module": module}
            missing += [(column, number) for column, name in names.items() if name == UNKNOWN_ID]
            trace.row(
                "CUDA_CALLCHAINS", id=number, unresolved=unresolved, stackDepth=depth,
                **{column: "" if name == UNKNOWN_ID else name for column, name in names.items()},
            )  # fmt: skip
    path = trace.write(tmp_path / "broken.sqlite")
    with closing(sqlite3.connect(path)) as database, database:
        for column, number in missing:
            database.execute(f"UPDATE CUDA_CALLCHAINS SET {column} = {UNKNOWN_ID} WHERE id = ?", (number,))
    with open_trace(path) as broken:
        rows = broken.query(
            """SELECT p.name FROM api_calls LEFT JOIN call_places AS p USING (process_id, correlation_id)
               ORDER BY start_ns"""
        ).rows()
        callers = dict(zip(BROKEN, (name for (name,) in rows), strict=True))
        assert callers == {case: name for case, (_, name) in BROKEN.items()}
        answers = [broken.answer("launches", group_by=group_by) for group_by in ("caller", "stack")]
        assert [sum(row["calls"] for row in answer.dicts()) for answer in answers] == [len(BROKEN)] * 2
    unnamed = sum(name is None for _, name in BROKEN.values())
    assert all(
        f"{unnamed} of {len(BROKEN)} CUDA calls have no backtrace" in " ".join(answer.notes) for answer in answers
    )


def test_equal_call_stacks_are_stored_once_and_apart_from_samples():
    """Use a trace with a call stack for each call and few different ones, like large traces (`benchmarks/tile.py`)."""
    reports = built_in_packs()
    call_facts = {"api_frames", "python_frames", "callers", "called_from"}
    assert not facts_read(reports["cpu-work"].sql) & call_facts
    with nsys_insight.open(REPOSITORY / "tests/data/chains/decode_cpu.sqlite", use_cache=False) as trace:
        stacks = {row["name"] for row in trace.answer("launches", group_by="stack").dicts()}
        ((frames,),) = trace.query("SELECT count(*) FROM call_frames WHERE of = 'api'").rows()
        count_chains = "SELECT count(*), count(DISTINCT signature) FROM facts.callers"
        ((chains, signatures),) = trace._connection.duckdb.execute(count_chains).fetchall()
    assert frames > 20_000
    assert chains == 838
    assert len(stacks) <= signatures < 50


@pytest.mark.slow
def test_a_tiled_trace_has_the_same_calls_per_caller_in_each_tile(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    tile = import_module("tile").tile
    source, target = REPOSITORY / "tests/data/chains/decode_cpu.sqlite", tmp_path / "tiled.sqlite"
    times = 3
    tile(source, target, times)
    callers = "SELECT name, count(*) AS calls, count(DISTINCT chain_id) AS chains FROM call_places GROUP BY name"
    frames = "SELECT of, count(*) FROM call_frames GROUP BY of"
    with open_trace(source) as original, open_trace(target) as tiled:
        for query in (callers, frames):
            expected = {name: [times * count for count in counts] for name, *counts in original.query(query).rows()}
            assert {name: counts for name, *counts in tiled.query(query).rows()} == expected


def test_calls_in_a_real_trace_are_named_after_pytorch_operators():
    """The program reads each of its 8 tokens back with `.item()` (tests/data/chains/README.md)."""
    with open_trace(REPOSITORY / "tests" / "data" / "chains" / "decode_cpu.sqlite") as trace:
        reads = [row for row in trace.answer("syncs", group_by="caller").dicts() if row["copy_kind"] == "D2H"]
        launches = {row["name"]: row["calls"] for row in trace.answer("launches", group_by="caller").dicts()}
    assert [(row["name"], row["calls"]) for row in reads] == [("aten::_local_scalar_dense", 8)]
    assert {"aten::mul_Tensor", "aten::copy_", "aten::add_Tensor"} <= launches.keys()


def sum_by_bottleneck(rows):
    """Sum the rows of `host` by activity."""
    sums = defaultdict(int)
    for row in rows:
        for column in ("recoverable_ns", *(("host_ns", "count") if row["code"] != "cpu_work" else ())):
            sums[row["code"], column] += row[column] or 0
    return sums


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [make_loop, make_one_iteration, make_loop_without_chains, "tests/data/chains/decode_cpu", "sample_traces/churn"],
    ids=lambda source: getattr(source, "__name__", source),
)  # fmt: skip
def test_host_time_adds_up_over_callers(write_once, source):
    """Compare sums in steady steps, and in a trace without steps."""
    with open_trace(REPOSITORY / f"{source}.sqlite" if isinstance(source, str) else write_once(source)) as trace:
        assert bool(trace.query("FROM steps WHERE phase = 'steady'").rows()) == (source is not make_one_iteration)
        expected = pytest.approx(sum_by_bottleneck(trace.answer("host").dicts()))
        for group_by in ("caller", "stack")[: 2 - isinstance(source, str)]:
            rows = trace.answer("host", group_by=group_by).dicts()
            assert sum_by_bottleneck(rows) == expected, group_by
            assert any(row["caller"] != "(no backtrace)" for row in rows)
            # The backtrace of a delayed launch does not name the function that did the CPU work before it.
            callers_of_work = [
                row["caller"] for row in rows if row["code"] == "cpu_work" and row["caller"] != "(no backtrace)"
            ]
            assert all(caller.startswith("before the launch ") for caller in callers_of_work)


def answers_by_caller(path):
    """Return the answers by caller. Sums of fractions are rounded, because they depend on the order of addition."""
    with nsys_insight.open(path, use_cache=False) as trace:
        return [
            (
                [[float(f"{cell:.12g}") if isinstance(cell, float) else cell for cell in row] for row in answer.rows()],
                answer.notes,
            )
            for report in ("syncs", "mallocs", "copies", "gaps", "gap-places")
            for answer in (trace.answer(report, group_by=group) for group in ("caller", "stack"))
        ]


COLUMNS = "id, symbol, module, unresolved, stackDepth"
SHUFFLED = f"""
    CREATE TABLE other AS SELECT {COLUMNS} FROM CUDA_CALLCHAINS ORDER BY rowid * 7919 % 25357;
    DELETE FROM CUDA_CALLCHAINS; INSERT INTO CUDA_CALLCHAINS ({COLUMNS}) SELECT {COLUMNS} FROM other"""
CHANGES = {
    "as it is": "SELECT 1",
    "chains in another order": f"{SHUFFLED} ORDER BY 5003 * id % 839, stackDepth",
    "frames in another order": SHUFFLED,
    "frames are missing": "DELETE FROM CUDA_CALLCHAINS WHERE rowid % 97 = 0",
    "chains are missing": "DELETE FROM CUDA_CALLCHAINS WHERE id % 50 = 3",
    "only launches have chains": """
        UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET callchainId = NULL
        WHERE nameId NOT IN (SELECT id FROM StringIds WHERE value LIKE 'cudaLaunch%')""",
    "chains name nothing": """
        UPDATE CUDA_CALLCHAINS SET symbol = (SELECT id FROM StringIds WHERE value = 'cudaLaunchKernel')""",
    "a symbol that only others resolve": """
        UPDATE CUDA_CALLCHAINS SET unresolved = 1 WHERE id IN (
            SELECT callchainId FROM CUPTI_ACTIVITY_KIND_RUNTIME
            WHERE nameId IN (SELECT id FROM StringIds WHERE value LIKE 'cudaStreamSynchronize%')
        )""",
    "without the column unresolved": "ALTER TABLE CUDA_CALLCHAINS DROP COLUMN unresolved",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_callers_from_some_stacks_equal_those_from_all_stacks(tmp_path, monkeypatch, change):
    path = tmp_path / "trace.sqlite"
    shutil.copyfile(REPOSITORY / "tests/data/chains/decode_cpu.sqlite", path)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(change)
    partial_answers = answers_by_caller(path)
    monkeypatch.setattr(sync_callers, "_UNCERTAIN_FRAMES", "SELECT 1")  # read all call stacks
    assert answers_by_caller(path) == partial_answers
