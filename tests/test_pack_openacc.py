"""`openacc`: what the runtime does by construct and source line, with the kernels and copies under it."""

from __future__ import annotations

from opening import open_trace
from synthetic import Trace


def write_program(path):
    """Three iterations of a construct in line 40: a copy that it implies, and a kernel of one gang."""
    trace = Trace()
    host = trace.thread()
    place = {"globalTid": host.global_tid, "lineNo": 40, "srcFile": "solve.c", "funcName": "relax"}
    for _ in range(3):
        begin = host.now
        host.copy("H2D", 4_096, runs=2_000, blocking=True)
        trace.row("CUPTI_ACTIVITY_KIND_OPENACC_DATA", start=begin, end=host.now, nameId="Enqueue Upload", bytes=4_096,
                  varName="grid", **place)  # fmt: skip
        launch_ns = host.now
        host.launch("relax_40_gpu", runs=50_000)
        trace.row("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", start=launch_ns, end=host.now, nameId="Enqueue Launch",
                  numGangs=1, numWorkers=4, vectorLength=32, kernelName="relax_40_gpu", **place)  # fmt: skip
        trace.row("CUPTI_ACTIVITY_KIND_OPENACC_OTHER", start=begin, end=host.now, nameId="Compute construct", **place)
        host.sync("stream")
    host.launch("other", runs=9_000)
    return trace.write(path)


def test_kernels_and_copies_under_each_construct(tmp_path):
    with open_trace(write_program(tmp_path / "trace.sqlite")) as session:
        rows = {row["name"]: row for row in session.openacc().to_dicts()}
    assert {row["place"] for row in rows.values()} == {"solve.c:40"}
    construct, launch, upload = (rows[name] for name in ("Compute construct", "Enqueue Launch", "Enqueue Upload"))
    assert (construct["calls"], construct["kernels"], construct["kernel_ns"]) == (3, 3, 150_000)
    assert (construct["copies"], construct["copy_ns"], construct["copy_bytes"]) == (3, 6_000, 12_288)
    assert construct["host_ns"] == launch["host_ns"] + upload["host_ns"]
    assert (launch["min_gangs"], launch["max_gangs"], launch["workers"], launch["vector_length"]) == (1, 1, 4, 32)
    assert (launch["kernels"], launch["copies"], upload["kernels"], upload["copies"]) == (3, 0, 0, 3)
    assert (upload["variables"], construct["min_gangs"]) == ("grid", None)


def test_without_openacc_the_answer_names_the_flag(tmp_path):
    trace = Trace()
    trace.thread().launch("kernel")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        answer = session.answer("openacc")
        assert answer.frame().is_empty()
        assert "-t cuda,openacc" in answer.empty
