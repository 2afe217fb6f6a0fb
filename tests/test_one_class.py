"""All reports give a kernel the same class: `classify`, `headroom`, `ncu report`, and the hot kernels."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from opening import diagnose_with
from synthetic import Trace

import nsys_insight
from nsys_insight.ingest.ncu import store
from nsys_insight.ingest.ncu.pages import Launch, Metric

TESTS = Path(__file__).parent
SHARED = TESTS.parents[1] / "shared" / "traces"
SAMPLES = TESTS.parent / "sample_traces"
FILES = {
    "churn": ["churn", "churn.25", "churn.23"],
    "decode_eager": ["decode_eager", "decode_eager.25"],
    "zoo_a": ["zoo_a.25"],
}
TRACES = [
    (ncu, path)
    for ncu, names in FILES.items()
    for path in (folder / f"{name}.sqlite" for name in names for folder in (SAMPLES, SHARED))
    if path.exists()
]
MEMORY_UNIT = "gpu__compute_memory_throughput"
EVIDENCE = re.compile(r"(\S+): [^;]* of the wall, [^;]*; (?:(\w+)-bound by ncu|(near the peak of both))")


def collect_classes(trace):
    """Collect the classes of each kernel that are based on ncu, with the reports that give them."""
    classes_by_kernel = defaultdict(dict)
    for row in trace.answer("classify-kernels").dicts():
        if row["evidence"] == "ncu":
            classes_by_kernel[row["name"], row["grid"], row["block"]]["classify"] = row["bound"]
    for row in trace.answer("headroom").dicts():
        classes_by_kernel[row["name"], row["grid"], row["block"]]["headroom"] = row["bound"]
    reported = trace.sql("""SELECT DISTINCT s.name, m.grid, m.block, k.bound
        FROM ncu_matches AS m JOIN ncu_kernels AS k USING (launch) JOIN strings AS s USING (name_id)
        WHERE m.match LIKE 'name, grid, block%'""")
    for row in reported.to_dicts():
        key = row["name"], row["grid"], row["block"]
        assert classes_by_kernel[key].get("ncu report", row["bound"]) == row["bound"], (
            "ncu report has two classes for it"
        )
        classes_by_kernel[key]["ncu report"] = row["bound"]
    return classes_by_kernel


def find_disagreements(classes_by_kernel):
    return {
        key: classes_by_report
        for key, classes_by_report in classes_by_kernel.items()
        if len(set(classes_by_report.values())) > 1
    }


@pytest.mark.slow
@pytest.mark.parametrize(("ncu", "path"), TRACES, ids=lambda value: getattr(value, "stem", value))
def test_every_report_gives_a_kernel_the_same_class(ncu, path, tmp_path):
    file = store.write(
        store.read_all(sorted((TESTS / "data" / "ncu").glob(f"{ncu}.ncu.*.csv"))), tmp_path / "x.ncu.duckdb"
    )
    with nsys_insight.open(path, ncu=file) as trace:
        classes_by_kernel = collect_classes(trace)
        assert any(len(classes_by_report) == 3 for classes_by_report in classes_by_kernel.values())
        assert find_disagreements(classes_by_kernel) == {}
        evidence = " ".join(finding.evidence for finding in trace.diagnose().findings if finding.family == "kernels")
    for name, bound, balanced in EVIDENCE.findall(evidence):
        classes = {
            cls
            for (full, *_), classes_by_report in classes_by_kernel.items()
            if name in full
            for cls in classes_by_report.values()
        }
        assert (bound or "balanced" if balanced else bound) in classes


def test_a_kernel_has_a_class_per_launch_shape_and_the_diagnosis_reports_the_longest(tmp_path):
    sm, memory = (f"{unit}.avg.pct_of_peak_sustained_elapsed" for unit in ("sm__throughput", MEMORY_UNIT))
    percentages = {64: (90, 30), 128: (20, 80), 256: (10, 20)}  # blocks: percent of the SMs' peak, and of memory's
    launches = [
        Launch("r", number, 1, "app", "f(float *)", 1, 7, 0, "9.0", (blocks, 1, 1), (128, 1, 1),
               {sm: Metric(sm_pct, "%"), memory: Metric(memory_pct, "%")})
        for number, (blocks, (sm_pct, memory_pct)) in enumerate(percentages.items())
    ]  # fmt: skip
    trace = Trace().gpu()
    host = trace.thread()
    for blocks, runs in ((64, 100_000), (128, 300_000), (256, 50_000)):
        host.launch("f(float *)", grid=(blocks, 1, 1), block=(128, 1, 1), runs=runs)
    path = trace.write(tmp_path / "trace.sqlite")
    with nsys_insight.open(path, ncu=store.write(launches, tmp_path / "x.ncu.duckdb")) as session:
        classes_by_kernel = collect_classes(session)
        text = diagnose_with(session, "hot-kernels").text(None)
    assert find_disagreements(classes_by_kernel) == {}
    assert {grid: classes_by_report["classify"] for (_, grid, _), classes_by_report in classes_by_kernel.items()} == {
        "64x1x1": "compute", "128x1x1": "memory", "256x1x1": "latency",
    }  # fmt: skip
    assert "memory-bound by ncu" in text
