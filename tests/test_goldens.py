"""Goldens: the reports and the diagnosis of the sample traces, stored to show what a change of the code changes.

`pytest tests/test_goldens.py --golden` (or `just golden`) writes those that changed, for review with `git diff`. A
golden does not show that an answer is right; the oracles in the other tests do.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest

import nsys_insight
from nsys_insight.diagnose.diagnosis import diagnose
from nsys_insight.packs.library import built_in_packs
from nsys_insight.packs.step_options import parse_options

REPOSITORY = Path(__file__).parents[1]
GOLDENS = Path(__file__).parent / "goldens"
SAMPLES = [f"sample_traces/{name}.sqlite" for name in ("churn", "decode_eager", "decode_graph_node")]
ROW_COUNT = 8  # stored rows of an answer; the oracles check totals


@functools.cache
def open_sample(path):
    return nsys_insight.open(path, use_cache=False)


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    monkeypatch.chdir(REPOSITORY)  # commands in answers repeat the path of the file


@pytest.fixture(scope="module", autouse=True)
def _close():
    yield
    open_sample.cache_clear()


def read_report(trace, name):
    answer = trace.answer(name)
    return {"rows": answer.row_count, "first": answer.dicts(ROW_COUNT), "notes": list(answer.notes)}


def read_diagnosis(trace):
    diagnosis = diagnose(trace, parse_options({}))
    return {
        "verdict": diagnosis.verdict,
        "first": [asdict(finding) for finding in diagnosis.findings],
        "notes": list(diagnosis.notes),
    }


def round_floats(value):
    """Leave out the last digits of floats, which depend on the order of the additions."""
    if isinstance(value, dict):
        return {key: round_floats(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [round_floats(item) for item in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def are_equal(left, right):
    """Whether two values are equal, with floats equal to eight digits."""
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(are_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(are_equal, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-8)
    return left == right


def format_golden(golden):
    """Write a golden with a row on each line, so that `git diff` shows the rows that changed."""
    traces = []
    for trace, answer in golden.items():
        entries = []
        for key, value in answer.items():
            lines = [f"\n   {json.dumps(row)}" for row in value] if isinstance(value, list) else None
            entries.append(f'\n  "{key}": ' + (f"[{','.join(lines)}]" if lines is not None else json.dumps(value)))
        traces.append(f'\n "{trace}": {{{",".join(entries)}\n }}')
    return "{" + ",".join(traces) + "\n}\n"


@pytest.mark.parametrize("name", [*built_in_packs(), "diagnose"])
def test_golden(name, request):
    read = read_diagnosis if name == "diagnose" else functools.partial(read_report, name=name)
    answers = {Path(path).stem: read(open_sample(path)) for path in SAMPLES}
    golden = json.loads(format_golden(round_floats(answers)))
    file = GOLDENS / f"{name}.json"
    old_golden = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    if request.config.getoption("--golden"):
        if not are_equal(old_golden, golden):
            GOLDENS.mkdir(exist_ok=True)
            file.write_text(format_golden(golden), encoding="utf-8")
        return
    assert old_golden is not None, f"there is no golden for {name}; just golden writes it"
    for trace, answer in golden.items():
        for part, value in answer.items():
            assert are_equal(old_golden[trace][part], value), (
                f"{part} of {name} on {trace} changed; just golden writes it"
            )
    assert old_golden.keys() == golden.keys()


def test_every_golden_has_a_report():
    assert {file.stem for file in GOLDENS.glob("*.json")} == {*built_in_packs(), "diagnose"}
