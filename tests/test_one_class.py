"""Whoever says what bounds a kernel says the same: `classify`, `headroom`, `ncu report`, and the hot kernels."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from synthetic import Trace

import nsys_insight
from nsys_insight.ingest.ncu import store
from nsys_insight.ingest.ncu.pages import Launch, Metric

HERE = Path(__file__).parent
SHARED = HERE.parents[1] / "shared" / "traces"
SAMPLES = HERE.parent / "sample_traces"
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
SAID = re.compile(r"(\S+): [^;]* of the wall, [^;]*; (?:(\w+)-bound by ncu|(near the peak of both))")


def classes_of(trace):
    """Give all classes that are said of a kernel by what ncu measured of it, with who says them."""
    said = defaultdict(dict)
    for row in trace.answer("classify-kernels").dicts():
        if row["evidence"] == "ncu":
            said[row["name"], row["grid"], row["block"]]["classify"] = row["bound"]
    for row in trace.answer("headroom").dicts():
        said[row["name"], row["grid"], row["block"]]["headroom"] = row["bound"]
    reported = trace.sql("""SELECT DISTINCT s.name, m.grid, m.block, k.bound
        FROM ncu_matches AS m JOIN ncu_kernels AS k USING (launch) JOIN strings AS s USING (name_id)
        WHERE m.match LIKE 'name, grid, block%'""")
    for row in reported.to_dicts():
        key = row["name"], row["grid"], row["block"]
        assert said[key].get("ncu report", row["bound"]) == row["bound"], "ncu report has two classes for it"
        said[key]["ncu report"] = row["bound"]
    return said


def disagreeing(said):
    return {key: by for key, by in said.items() if len(set(by.values())) > 1}


@pytest.mark.slow
@pytest.mark.parametrize(("ncu", "path"), TRACES, ids=lambda value: getattr(value, "stem", value))
def test_one_kernel_has_one_class_whoever_is_asked(ncu, path, tmp_path):
    file = store.write(
        store.read_all(sorted((HERE / "data" / "ncu").glob(f"{ncu}.ncu.*.csv"))), tmp_path / "x.ncu.duckdb"
    )
    with nsys_insight.open(path, ncu=file) as trace:
        said = classes_of(trace)
        assert any(len(by) == 3 for by in said.values())
        assert disagreeing(said) == {}
        evidence = " ".join(one.evidence for one in trace.diagnose().findings if one.family == "kernels")
    for name, bound, balanced in SAID.findall(evidence):
        classes = {cls for (full, *_), by in said.items() if name in full for cls in by.values()}
        assert (bound or "balanced" if balanced else bound) in classes


def test_a_kernel_with_several_answers_has_one_for_each_of_its_shapes_and_the_longest_one_is_said(tmp_path):
    sm, memory = (f"{unit}.avg.pct_of_peak_sustained_elapsed" for unit in ("sm__throughput", MEMORY_UNIT))
    measured = {64: (90, 30), 128: (20, 80), 256: (10, 20)}  # blocks: percent of the SMs' peak, and of memory's
    launches = [
        Launch("r", number, 1, "app", "f(float *)", 1, 7, 0, "9.0", (blocks, 1, 1), (128, 1, 1),
               {sm: Metric(of_sm, "%"), memory: Metric(of_memory, "%")})
        for number, (blocks, (of_sm, of_memory)) in enumerate(measured.items())
    ]  # fmt: skip
    trace = Trace().gpu()
    host = trace.thread()
    for blocks, runs in ((64, 100_000), (128, 300_000), (256, 50_000)):
        host.launch("f(float *)", grid=(blocks, 1, 1), block=(128, 1, 1), runs=runs)
    path = trace.write(tmp_path / "trace.sqlite")
    with nsys_insight.open(path, ncu=store.write(launches, tmp_path / "x.ncu.duckdb")) as opened:
        said = classes_of(opened)
        text = opened.diagnose().text(None)
    assert disagreeing(said) == {}
    assert {grid: by["classify"] for (_, grid, _), by in said.items()} == {
        "64x1x1": "compute", "128x1x1": "memory", "256x1x1": "latency",
    }  # fmt: skip
    assert "memory-bound by ncu" in text
