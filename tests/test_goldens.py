"""Goldens: what each report and the diagnosis say about the sample traces, kept to see what a change changes.

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
from nsys_insight.packs.library import built_in
from nsys_insight.packs.step_options import checked

REPOSITORY = Path(__file__).parents[1]
GOLDENS = Path(__file__).parent / "goldens"
SAMPLES = [f"sample_traces/{name}.sqlite" for name in ("churn", "decode_eager", "decode_graph_node")]
FIRST = 8  # rows of an answer that are kept; what they add up to is a matter for oracles


@functools.cache
def opened(path):
    return nsys_insight.open(path, use_cache=False)


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    monkeypatch.chdir(REPOSITORY)  # commands in answers name the file as it was given


@pytest.fixture(scope="module", autouse=True)
def _close():
    yield
    opened.cache_clear()


def report(trace, name):
    answer = trace.answer(name)
    return {"rows": answer.row_count, "first": answer.dicts(FIRST), "notes": list(answer.notes)}


def diagnosis(trace):
    found = diagnose(trace, checked({}))
    return {
        "verdict": found.verdict,
        "first": [asdict(finding) for finding in found.findings],
        "notes": list(found.notes),
    }


def short(value):
    """Leave out the last digits of floats, which differ with the order of adding."""
    if isinstance(value, dict):
        return {key: short(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [short(one) for one in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def same(left, right):
    """Tell whether two values are equal, floats to eight digits."""
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-8)
    return left == right


def text(golden):
    """Write a golden with a row on each line, so that `git diff` shows the rows that changed."""
    traces = []
    for trace, said in golden.items():
        parts = []
        for key, value in said.items():
            lines = [f"\n   {json.dumps(one)}" for one in value] if isinstance(value, list) else None
            parts.append(f'\n  "{key}": ' + (f"[{','.join(lines)}]" if lines is not None else json.dumps(value)))
        traces.append(f'\n "{trace}": {{{",".join(parts)}\n }}')
    return "{" + ",".join(traces) + "\n}\n"


@pytest.mark.parametrize("name", [*built_in(), "diagnose"])
def test_golden(name, request):
    say = diagnosis if name == "diagnose" else functools.partial(report, name=name)
    said = {Path(path).stem: say(opened(path)) for path in SAMPLES}
    now = json.loads(text(short(said)))
    file = GOLDENS / f"{name}.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    if request.config.getoption("--golden"):
        if not same(before, now):
            GOLDENS.mkdir(exist_ok=True)
            file.write_text(text(now), encoding="utf-8")
        return
    assert before is not None, f"there is no golden for {name}; just golden writes it"
    for trace, answer in now.items():
        for part, value in answer.items():
            assert same(before[trace][part], value), f"{part} of {name} on {trace} changed; just golden writes it"
    assert before.keys() == now.keys()


def test_every_golden_is_of_a_report_that_is_there():
    assert {file.stem for file in GOLDENS.glob("*.json")} == {*built_in(), "diagnose"}
