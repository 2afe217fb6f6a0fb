"""The result of `check` for CI pipelines: JUnit XML as tests, SARIF as annotations of the code.

JUnit as Jenkins, GitLab and GitHub's actions read it; SARIF 2.1.0 (OASIS), with the properties that GitHub asks for.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from nsys_insight.compare.answer import quantity
from nsys_insight.compare.budgets import ALIASES, OK
from nsys_insight.text.units import label_of
from nsys_insight.version import __version__

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
# What XML 1.0 cannot hold.
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(answer: Answer) -> str:
    """Write each budget as a test case, which fails if the budget is broken or not known."""
    rows = answer.dicts()
    failed = sum(row["verdict"] != OK for row in rows)
    cases = []
    for row in rows:
        name = f"{row['metric']} ({row['bound']})"
        begin = f"    <testcase classname={_attribute(str(answer.trace.get('file', 'trace')))} name={_attribute(name)}"
        if row["verdict"] == OK:
            cases.append(f"{begin}/>")
        else:
            message, kind = _attribute(sentence(row)), _attribute(str(row["verdict"]))
            cases.append(f"{begin}>\n      <failure message={message} type={kind}/>\n    </testcase>")
    counts = f'tests="{len(rows)}" failures="{failed}"'
    suite = [f'  <testsuite name="nsys-insight check" {counts}>', *cases, "  </testsuite>"]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {counts}>", *suite, "</testsuites>", ""])


def sarif(answer: Answer, budget: Path | None, baseline: Path | None) -> str:
    """Write each broken budget as a result, at its line of the budget's file or in the baseline's."""
    broken = [row for row in answer.dicts() if row["verdict"] != OK]
    lines = budget.read_text(encoding="utf-8").splitlines() if budget else []
    trace = str(answer.trace.get("file", "trace"))
    rules = [
        {
            "id": rule,
            "shortDescription": {"text": f"Budget of {label_of(rule)}"},
            "help": {"text": f"See: {row['where'] or 'nsys-insight per-token'}"},
        }
        for rule, row in {row["metric"]: row for row in broken}.items()
    ]
    driver = {"name": "nsys-insight", "version": __version__, "rules": rules}
    results = [
        {
            "ruleId": row["metric"],
            "level": "error",
            "message": {"text": sentence(row)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": _uri(baseline if row["bound"] == "baseline" else budget, trace)},
                        "region": {"startLine": 1 if row["bound"] == "baseline" else _line(lines, row["metric"])},
                    }
                }
            ],
            "partialFingerprints": {"budget": f"{row['bound']} {row['metric']}"},
        }
        for row in broken
    ]
    run: dict[str, Any] = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def sentence(row: dict[str, Any]) -> str:
    """Say of a budget that is broken, or of which nothing is known, what was asked and what was found."""
    asked, found = quantity(row["metric"], row["asked"], row["found"])
    words = {"max": "at most", "min": "at least"}.get(row["bound"], "as in the baseline, at most")
    told = f"is {found}" if row["found"] is not None else "is unknown in this trace"
    limit = f"{words} {asked}" if row["asked"] is not None else "the baseline does not have it"
    where = f"; see {row['where']}" if row["where"] else ""
    return f"{label_of(row['metric'])} {told}; allowed: {limit}{where}"


def _uri(path: Path | None, trace: str) -> str:
    """A file as GitHub looks for it: from the folder in which the check runs."""
    if path is None:
        return trace
    real, here = path.resolve(), Path.cwd()
    return (real.relative_to(here) if real.is_relative_to(here) else real).as_posix()


def _line(lines: list[str], metric: str) -> int:
    """The line of a TOML file that sets a metric, however it is called there; 1 if none is found."""
    names = {metric, re.sub(r"_(ns|bytes)$", "", metric), *(name for name, of in ALIASES.items() if of == metric)}
    for number, line in enumerate(lines, start=1):
        key = re.sub(r"_per_(token|step)$", "", line.partition("=")[0].strip().strip("\"'"))
        if key in names:
            return number
    return 1


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))
