"""A rule written out: what it looks for, what to do in each framework, and how the saving is estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.diagnose.findings import FRAMEWORKS, FindingRule
from nsys_insight.session.answer import Answer, build_answer, read_columns
from nsys_insight.text.templates import show_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


# The groups of rules, by the first digit of their codes: what the time is lost to.
GROUPS = {
    "1": "The host and launches",
    "2": "Waits of the host",
    "3": "Copies and memory",
    "4": "Kernels",
    "5": "Communication and ranks",
    "6": "Steps",
    "7": "Operations that something replaces",
    "9": "The capture",
}
_EFFORTS = {
    "flag": "a flag or an environment variable",
    "line": "a line of code",
    "function": "a few lines of code",
    "redesign": "a redesign",
}
_NUMERICS = {
    "same": "the results stay the same",
    "rounding": "results may differ by rounding",
    "precision": "results lose precision: check the accuracy of the program",
}


_COLUMNS = read_columns("diagnose/rules")


def make_answer(rules: Sequence[FindingRule]) -> Answer:
    """Return a list of rules as an answer."""
    rows = [(rule.code, rule.name, rule.title, GROUPS[rule.code[3]], rule.effort, rule.numerics) for rule in rules]
    return build_answer(_COLUMNS, rows, report="rule", title="Rules of diagnose")


def write_rule(rule: FindingRule) -> str:
    """Write a rule as Markdown."""
    return "\n".join(_write_lines(rule)).rstrip() + "\n"


def _write_lines(rule: FindingRule) -> Iterator[str]:
    yield from (f"# {rule.code} {rule.name}", "", f"**{rule.title}.** {rule.meaning}", "")
    yield from ("## Evidence", "", "; ".join(_write_clauses(rule)) + ".", "")
    yield from ("## What to do", "")
    if any(isinstance(text, dict) for text in rule.cure.values()):
        for case, texts in rule.cure.items():
            yield from (f"{case.replace('_', ' ').capitalize()}:", "")
            yield from _write_cures(texts)
    else:
        yield from _write_cures(rule.cure)
    yield f"It takes {_EFFORTS[rule.effort]}; {_NUMERICS[rule.numerics]}."
    yield from ("", "## When that is wrong", "", rule.caveat, "")
    if rule.estimate:
        yield from ("## The saving", "", rule.estimate, "")
    if rule.params:
        yield from ("## Thresholds", "")
        yield from (f"- {name} = {number:g}: {rule.param_help[name]}" for name, number in rule.params.items())
        yield ""
    if rule.links:
        yield from ("## Documentation", "", *(f"- {link}" for link in rule.links), "")
    example = f" An example: `{rule.example}`." if rule.example else ""
    yield f"Details: `nsys-insight {rule.report}`.{example}"


def _write_cures(texts: Mapping[str, str]) -> Iterator[str]:
    yield from (f"- {FRAMEWORKS[framework]}: {show_columns(text)}" for framework, text in texts.items())
    yield ""


def _write_clauses(rule: FindingRule) -> Iterator[str]:
    for clause in rule.evidence:
        text = show_columns(clause if isinstance(clause, str) else clause[0])
        for name, clauses in rule.items.items():
            items = ", ".join(show_columns(item if isinstance(item, str) else item[0]) for item in clauses)
            text = text.replace(show_columns(f"{{{name}}}"), items)
        if text:
            yield text
