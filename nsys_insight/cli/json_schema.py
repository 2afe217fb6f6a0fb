"""The JSON Schema of what a command writes under ``--format json``, by the command's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.cli import json_of_commands
from nsys_insight.errors import UsageError
from nsys_insight.packs import library, step_options
from nsys_insight.render import json_schema
from nsys_insight.text.near import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.packs.pack import Pack

Schema = dict[str, Any]


def schema_of(name: str | None) -> Schema:
    """Return the schema of a report, of another command's answer, or of an error; without a name, of all of them.

    Raises:
        UsageError: Nothing is called so.
    """
    if name is None:
        every = {each: schema_of(each) for each in names()}
        return {
            "$schema": json_schema.DIALECT,
            "title": "What nsys-insight writes as JSON",
            "anyOf": [{"$ref": f"#/$defs/{each}"} for each in every],
            "$defs": every,
        }
    if make := _OTHERS.get(name.replace(" ", "-")):
        return make()
    if pack := library.named(name) or library.named(name.replace("_", "-")):
        return of_pack(pack)
    hint = did_you_mean(name, names()) or f"nsys-insight schema --json takes: {', '.join(names())}"
    raise UsageError(f"there is no JSON of {name!r}", hint)


def names() -> list[str]:
    """What has a schema."""
    return [*library.known(), *_OTHERS]


def of_pack(pack: Pack) -> Schema:
    """The schema of a report's answer; the types of its columns are those over a trace in which nothing happened."""
    from nsys_insight.session.answer import Column
    from nsys_insight.session.model import empty_model

    with empty_model() as connection:
        found = connection.execute(f"DESCRIBE {pack.statement({})[0]}").fetchall()
    columns = [Column(name, kind, pack.columns.get(name, "")) for name, kind, *_ in found]
    return json_schema.answer(pack.name, pack.title, columns, pack.params | step_options.params_of(pack.names))


def _diagnose() -> Schema:
    from nsys_insight.diagnose.text import COLUMNS

    text, known, number = {"type": "string"}, {"type": "number"}, {"type": ["number", "null"]}
    share = {
        "part": text,
        "is_busy": {"type": "boolean"},
        "time_ns": known,
        "wall_pct": known,
    }
    summary = {
        "status": {"enum": ["findings", "healthy", "unseen", "empty"]},
        "verdict": {**text, "description": "What bounds the run"},
        "per": {"enum": ["step", "token", "trace"], "description": "What times are given for"},
        "wall_ns": number,
        "tokens_per_s": number,
        "gpu_busy_pct": known,
        "gpu_idle_pct": known,
        "shares": {"type": "array", "items": json_schema.object_of(share), "description": "They add up to 100 %"},
        "steps": {"type": "object", "description": "How steps were found"},
        "not_judged": {"type": "array", "items": json_schema.object_of({"what": text, "how": text})},
        "run": {"type": "object", "description": "For the ranks of a run: which one the others wait for"},
    }
    required = [name for name in summary if name != "run"]
    headline = json_schema.object_of(summary, required)
    return json_schema.answer("diagnose", "What bounds the run, and what to do first", COLUMNS, None, headline)


def _diff() -> Schema:
    from nsys_insight.compare.answer import COLUMNS

    return json_schema.answer("diff", "What a change affected", COLUMNS)


def _check() -> Schema:
    from nsys_insight.compare.budgets import COLUMNS

    return json_schema.answer("check", "A run against a budget", COLUMNS)


def _packs() -> Schema:
    from nsys_insight.cli.packs import LISTED

    return json_schema.answer("packs", "The reports", LISTED)


_OTHERS: dict[str, Callable[[], Schema]] = {
    "diagnose": _diagnose,
    "diff": _diff,
    "check": _check,
    "packs": _packs,
    "sql": lambda: json_schema.any_answer("The answer to a query", "sql"),
    "answer": lambda: json_schema.any_answer("What all answers share"),
    "error": json_schema.error,
    **json_of_commands.SCHEMAS,
    "ncu-report": lambda: json_of_commands.of_ncu_report(schema_of("headroom")),
}
