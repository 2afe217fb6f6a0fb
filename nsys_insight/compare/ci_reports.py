"""Write the result of `check` for CI pipelines: JUnit XML as tests, SARIF and GitHub's commands as annotations.

Jenkins, GitLab and GitHub's actions read the JUnit file. SARIF 2.1.0 (OASIS) has the properties that GitHub requires.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from nsys_insight.compare.budgets import ALIASES, FINDING, OK
from nsys_insight.text.units import label_of, values
from nsys_insight.version import __version__

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
# Characters that XML 1.0 does not allow.
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def format_junit(answer: Answer) -> str:
    """Format each budget as a test case, which fails if the limit is exceeded or cannot be checked."""
    rows = answer.dicts()
    failure_count = sum(row["verdict"] != OK for row in rows)
    cases = []
    for row in rows:
        name = f"{row['metric']} ({row['bound']})"
        trace = str(answer.trace.get("file", "trace"))
        opening_tag = f"    <testcase classname={_quote_attribute(trace)} name={_quote_attribute(name)}"
        if row["verdict"] == OK:
            cases.append(f"{opening_tag}/>")
        else:
            message, kind = _quote_attribute(describe_budget(row)), _quote_attribute(str(row["verdict"]))
            cases.append(f"{opening_tag}>\n      <failure message={message} type={kind}/>\n    </testcase>")
    counts = f'tests="{len(rows)}" failures="{failure_count}"'
    suite = [f'  <testsuite name="nsys-insight check" {counts}>', *cases, "  </testsuite>"]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {counts}>", *suite, "</testsuites>", ""])


def format_sarif(answer: Answer, budget: Path | None, baseline: Path | None) -> str:
    """Format each broken budget as a result, at its line of the budget file or in the baseline's file."""
    broken_rows = [row for row in answer.dicts() if row["verdict"] != OK]
    budget_lines = budget.read_text(encoding="utf-8").splitlines() if budget else []
    trace = str(answer.trace.get("file", "trace"))
    rules = [
        {
            "id": rule.partition(" ")[0],
            "shortDescription": {
                "text": rule.partition(" ")[2] if row["bound"] == FINDING else f"Budget of {label_of(rule)}"
            },
            "help": {"text": f"See: {row['where'] or 'nsys-insight per-token'}"},
        }
        for rule, row in {row["metric"]: row for row in broken_rows}.items()
    ]
    driver = {"name": "nsys-insight", "version": __version__, "rules": rules}
    locations = [_locate_budget(row, budget, baseline, budget_lines, trace) for row in broken_rows]
    results = [
        {
            "ruleId": row["metric"].partition(" ")[0],
            "level": "error",
            "message": {"text": describe_budget(row)},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": file}, "region": {"startLine": line}}}],
            "partialFingerprints": {"budget": f"{row['bound']} {row['metric']}"},
        }
        for row, (file, line) in zip(broken_rows, locations, strict=True)
    ]
    run: dict[str, Any] = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def format_github(answer: Answer, budget: Path | None, baseline: Path | None) -> str:
    """Format each broken budget as a workflow command of GitHub, which annotates its line in a pull request.

    The last line is a notice with the number of limits that are met.
    """
    rows = answer.dicts()
    broken_rows = [row for row in rows if row["verdict"] != OK]
    budget_lines = budget.read_text(encoding="utf-8").splitlines() if budget else []
    trace = str(answer.trace.get("file", "trace"))
    lines = []
    for row in broken_rows:
        file, line = _locate_budget(row, budget, baseline, budget_lines, trace)
        title = _escape_property(f"{row['metric']} ({row['bound']})")
        place = f"file={_escape_property(file)},line={line}"
        lines.append(f"::error {place},title={title}::{_escape_command(describe_budget(row))}")
    met_count = len(rows) - len(broken_rows)
    lines.append(
        f"::notice title=nsys-insight check::{met_count} of {len(rows)} limits met in {_escape_command(trace)}"
    )
    return "\n".join(lines) + "\n"


def _escape_command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_command(text).replace(":", "%3A").replace(",", "%2C")


def describe_budget(row: dict[str, Any]) -> str:
    """Return a sentence on a broken or unknown budget: the measured value and the limit, or the evidence."""
    if row["bound"] == FINDING:
        return f"{row['metric']}: {row['evidence']}; see {row['where']}"
    limit_value, measured_value = values(row["metric"], (row["limit"], row["actual"]))
    bound_words = {"max": "at most", "min": "at least"}.get(row["bound"], "as in the baseline, at most")
    state_text = f"is {measured_value}" if row["actual"] is not None else "is unknown in this trace"
    limit_text = f"{bound_words} {limit_value}" if row["limit"] is not None else "the baseline does not have it"
    see_also = f"; see {row['where']}" if row["where"] else ""
    return f"{label_of(row['metric'])} {state_text}; allowed: {limit_text}{see_also}"


def _locate_budget(
    row: dict[str, Any], budget: Path | None, baseline: Path | None, budget_lines: list[str], trace: str
) -> tuple[str, int]:
    """Return the file and line of a budget: in the budget's file, in the baseline, or the trace."""
    is_of_baseline = row["bound"] == "baseline"
    return (
        _locate_artifact(baseline if is_of_baseline else budget, trace),
        1 if is_of_baseline else _find_line(budget_lines, row["metric"]),
    )


def _locate_artifact(path: Path | None, trace: str) -> str:
    """Return the path that GitHub expects: relative to the working folder if the file lies in it."""
    if path is None:
        return trace
    resolved_path, working_folder = path.resolve(), Path.cwd()
    return (
        resolved_path.relative_to(working_folder) if resolved_path.is_relative_to(working_folder) else resolved_path
    ).as_posix()


def _find_line(lines: list[str], metric: str) -> int:
    """Return the line number in a TOML file that sets a metric, under any of its names; 1 if no line does."""
    names = {metric, re.sub(r"_(ns|bytes)$", "", metric), *(alias for alias, name in ALIASES.items() if name == metric)}
    for number, line in enumerate(lines, start=1):
        key = re.sub(r"_per_(token|step)$", "", line.partition("=")[0].strip().strip("\"'"))
        if key in names:
            return number
    return 1


def _quote_attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))
