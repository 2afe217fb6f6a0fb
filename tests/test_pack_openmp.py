"""`openmp`: what the OpenMP runtime does on the host, and the kernels and copies under it."""

from __future__ import annotations

from opening import open_trace
from oracle import add_up_events, operations_of_calls, read, strings
from synthetic import Trace


def write_program(path):
    """Two parallel regions on two threads. The first thread copies and starts the kernels of two target regions."""
    trace = Trace()
    first, second = trace.thread(tid=100), trace.thread(tid=101, name="worker")
    for number in range(2):
        begin = first.now
        first.copy("H2D", 8_192, runs=3_000, blocking=True)
        first.launch("nvkernel_relax_F1L40_2", runs=50_000)
        first.launch("__omp_offloading_fd00_a1b2c3_sum_up_l72", runs=7_000)
        loop_end = first.now
        first.idle(4_000)
        for host, arrival in ((first, loop_end), (second, begin + 10_000 * number)):
            place = {"globalTid": host.global_tid}
            trace.row("OPENMP_EVENT_KIND_WORKSHARE", start=begin, end=arrival, nameId="Loop", **place)
            trace.row("OPENMP_EVENT_KIND_SYNC_REGION", start=arrival, end=first.now, nameId="Barrier", **place)
            trace.row("OPENMP_EVENT_KIND_SYNC_REGION_WAIT", start=arrival + 100, end=first.now, nameId="Barrier",
                      **place)  # fmt: skip
        trace.row(
            "OPENMP_EVENT_KIND_PARALLEL", start=begin, end=first.now, nameId="Parallel", globalTid=first.global_tid
        )
        first.launch("other", runs=9_000)
    return trace.write(path)


def test_events_equal_a_plain_loop(tmp_path):
    path = write_program(tmp_path / "trace.sqlite")
    tables = read(path)
    names = strings(tables)
    kinds = {"PARALLEL": "parallel", "WORKSHARE": "worksharing", "SYNC_REGION": "synchronization",
             "SYNC_REGION_WAIT": "wait"}  # fmt: skip
    expected = add_up_events(
        [
            ((kind, names[row["nameId"]]), row)
            for table, kind in kinds.items()
            for row in tables[f"OPENMP_EVENT_KIND_{table}"]
        ],
        operations_of_calls(tables),
    )
    with open_trace(path) as session:
        rows = {(row["kind"], row["name"]): row for row in session.openmp().to_dicts() if row["kind"] != "target"}
    assert rows.keys() == expected.keys()
    for key, row in rows.items():
        assert {**row, "sum_ns": row["host_ns"]}.items() >= expected[key].items()
    # A wait is a part of its barrier: the rows differ although both are called Barrier.
    assert rows["wait", "Barrier"]["host_ns"] == rows["synchronization", "Barrier"]["host_ns"] - 4 * 100
    assert rows["parallel", "Parallel"]["kernels"] == 4


def test_target_regions_have_function_and_line(tmp_path):
    with open_trace(write_program(tmp_path / "trace.sqlite")) as session:
        rows = [row for row in session.openmp().to_dicts() if row["kind"] == "target"]
    assert [(row["name"], row["kernels"], row["kernel_ns"], row["threads"]) for row in rows] == [
        ("relax:40", 2, 100_000, 1),
        ("sum_up:72", 2, 14_000, 1),
    ]


def test_without_openmp_the_answer_names_the_flag(tmp_path):
    trace = Trace()
    trace.thread().launch("kernel")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        answer = session.answer("openmp")
        assert answer.frame().is_empty()
        assert "-t cuda,openmp" in answer.empty
