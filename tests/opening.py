"""Open traces for tests.

Traces of the repository, also packed ones, and planted loops are opened once for all tests of a process. Tests do not
change them.
"""

from __future__ import annotations

import lzma
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import planted
from kept_connections import final_folder, is_in_final_folder, keep_connections
from oracle import is_permanent

import nsys_insight
from nsys_insight.diagnose import diagnosis
from nsys_insight.diagnose.evaluate import AnsweredReports, evaluate
from nsys_insight.diagnose.findings import read_finding_rules
from nsys_insight.diagnose.headline import NOTES, read_headline
from nsys_insight.diagnose.rule_choice import RuleChoice
from nsys_insight.ingest.scope import FULL_TRACE
from nsys_insight.packs.step_options import AUTO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsys_insight.diagnose.diagnosis import Diagnosis
    from nsys_insight.diagnose.findings import Finding, Headline
    from nsys_insight.ingest.scope import Scope
    from nsys_insight.trace import Trace


@contextmanager
def open_trace(path: Path | str, *, is_final: bool = False, **scope: Any) -> Iterator[Trace]:
    """Open a trace in a scope. A trace that a test wrote is closed after the block.

    With `is_final`, nothing changes the file, although it was written just now.
    """
    selected_scope = FULL_TRACE.narrowed(**scope)
    if is_permanent(path) or is_in_final_folder(path):
        yield _open_once(path, selected_scope)
        return
    with keep_connections(are_final=is_final):
        opened_trace = nsys_insight.open(path, scope=selected_scope)
    with opened_trace as trace:
        yield trace


def evaluate_rules(trace: Trace, names: Iterable[str]) -> dict[str, Finding]:
    """Evaluate some rules on a trace; return their findings by name, those about constructs also by title."""
    rules = RuleChoice(tuple(names)).filter(read_finding_rules())
    findings = evaluate(trace, rules, AUTO)
    constructs = {finding.title: finding for finding in findings if finding.name == "replaceable-construct"}
    return {finding.name: finding for finding in findings} | constructs


def diagnose_with(trace: Trace, *names: str) -> Diagnosis:
    """Diagnose a trace with some rules only: the headline, and the findings of these rules."""
    return diagnosis.diagnose(trace, AUTO, choice=RuleChoice(names or ("launch-bound",)))


@contextmanager
def only_rules(*names: str) -> Iterator[None]:
    """Let diagnoses, briefs and pages in the block have only these rules: all of them take most of a test's time."""
    rules = RuleChoice(names).filter(read_finding_rules()) if names else ()
    with patch.object(diagnosis, "read_finding_rules", lambda: rules):
        yield


def read_headline_of(trace: Trace) -> Headline:
    """Read the headline of a trace, without its findings."""
    return read_headline(AnsweredReports(trace, AUTO, NOTES))


@cache
def planted_path(name: str) -> Path:
    """Write one of `planted.ALL` once."""
    return planted.ALL[name]().write(final_folder() / f"{name}.sqlite")


@cache
def unpack(packed: Path) -> Path:
    """Unpack a trace of the repository once."""
    path = final_folder() / packed.parents[1].name / packed.stem
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return path


@cache
def _open_once(path: Path | str, selected_scope: Scope) -> Trace:
    with keep_connections(are_final=True):
        return nsys_insight.open(path, scope=selected_scope, use_cache=False)
