"""Whoever says what bounds a kernel says the same: `classify`, `headroom`, `ncu report`, and the hot kernels."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

import nsys_insight
from nsys_insight.ingest.ncu import store

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
