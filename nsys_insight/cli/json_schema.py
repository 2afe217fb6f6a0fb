"""The JSON Schema of what a command writes under ``--format json``, by the command's name."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.packs import library
from nsys_insight.packs.rules import SEVERITIES
from nsys_insight.packs.step_options import params_of
from nsys_insight.render import json_schema
from nsys_insight.render.json_ import SCHEMA
from nsys_insight.session.answer import Column
from nsys_insight.text.near import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.packs.pack import Pack

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": ["number", "null"]}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_NAMED: Schema = {"type": "object", "additionalProperties": _TEXT}
# What a field of a dataclass becomes, by its annotation.
_FIELDS: dict[str, Schema] = {
    "str": _TEXT, "bool": {"type": "boolean"}, "int": {"type": "integer"}, "float | None": _NUMBER,
    "int | None": {"type": ["integer", "null"]}, "str | None": {"type": ["string", "null"]},
    "tuple[str, ...]": _TEXTS, "dict[str, str]": _NAMED,
}  # fmt: skip


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
    return json_schema.answer(pack.name, pack.title, columns, pack.params | params_of(pack.names))


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
    from nsys_insight.cli.commands.packs import LISTED

    return json_schema.answer("packs", "The reports", LISTED)


def _bench() -> Schema:
    """What `bench` writes of one command, or of two sides."""
    from nsys_insight.bench.answer import ONE, TWO
    from nsys_insight.bench.checks import Check
    from nsys_insight.bench.sanitizer import Error

    gpus = {"type": "array", "items": {"type": "object"}, "description": "Clocks, temperature, processes of each GPU"}
    check = json_schema.object_of(
        {**_of_dataclass(Check), "errors": _many(json_schema.object_of(_of_dataclass(Error)))}
    )
    summary = {
        "conditions": {**_NAMED, "description": "GPU, driver, clocks, commit"},
        "gpus_before": gpus,
        "gpus_after": gpus,
        "sides": _many(json_schema.object_of({"label": _TEXT, "command": _TEXT, "parameters": _NAMED})),
        "checks": _many(check),
        "tests_passed": {"type": ["boolean", "null"], "description": "Null: not checked"},
    }
    decided = {
        "decision": {"enum": ["accept", "unchecked", "small", "revert", "indistinguishable", "refused", "unknown"]},
        "different_parameters": {"type": "object", "additionalProperties": _TEXTS},
    }
    title = "A benchmark"
    return json_schema.one_of(
        title,
        json_schema.answer("bench", title, ONE, {}, json_schema.object_of(summary)),
        json_schema.answer("bench", f"{title}, before and after", TWO, {}, json_schema.object_of(summary | decided)),
    )


def _experiment() -> Schema:
    """What each command of `experiment` writes: the tries that it is about."""
    from nsys_insight.cli.commands.experiment import columns
    from nsys_insight.experiment.log import Try

    number = {"type": ["integer", "null"]}
    summary = {
        "folder": _TEXT,
        "goal": _TEXT,
        "open": {**number, "description": "The try that waits for keep or revert"},
        "current": {**number, "description": "The try that the next one is compared with"},
        "tries": _many(json_schema.object_of(_of_dataclass(Try))),
    }
    return json_schema.answer("experiment", "Changes, one at a time", columns(), {}, json_schema.object_of(summary))


def _sass() -> Schema:
    """What `sass` writes, by its `--by`."""
    from nsys_insight.kernel_code.sass import ANSWERS

    ways = (json_schema.answer("sass", title, columns, {}) for title, columns, _ in ANSWERS.values())
    return json_schema.one_of("Machine code of kernels", *ways)


def _ptxas() -> Schema:
    """What `ptxas` writes."""
    from nsys_insight.kernel_code.ptxas import COLUMNS

    return json_schema.answer("ptxas", "Resources of kernels", COLUMNS, {})


def _ncu_plan() -> Schema:
    """What `ncu plan` writes: the command as `params`, the launches that it profiles as rows."""
    from nsys_insight.ncu.plan import COLUMNS

    kinds = {"planned": "BOOLEAN", "kernel_time_pct": "DOUBLE"} | dict.fromkeys(("name", "grid", "block"), "VARCHAR")
    columns = [Column(name, kinds.get(name, "BIGINT"), about) for name, about in COLUMNS.items()]
    schema = json_schema.answer("ncu plan", "Launches that ncu will profile", columns)
    schema["properties"]["params"] = json_schema.object_of({"command": _TEXTS, "set": _TEXT})
    return schema


def _ncu_diff() -> Schema:
    """What `ncu diff` writes."""
    from nsys_insight.ncu.diff import COLUMNS

    return json_schema.answer("ncu diff", "Two ncu measurements", COLUMNS, {})


def _ncu_roofline() -> Schema:
    """What `ncu roofline` writes, without a baseline and with one."""
    from nsys_insight.ncu.roofline import AGAINST, COLUMNS

    title = "Kernels under the roofline, as ncu counted"
    return json_schema.one_of(
        title,
        json_schema.answer("ncu roofline", title, COLUMNS, {}),
        json_schema.answer("ncu roofline", f"{title}, beside a baseline", (*COLUMNS, *AGAINST), {}),
    )


def _ncu_report(headroom: Schema) -> Schema:
    """What `ncu report` writes: not an answer, but an object of kernels, each with a row of the report `headroom`."""
    from nsys_insight.ncu.strategies import EFFORTS

    finding = {
        "rule": _TEXT,
        "severity": {"enum": list(SEVERITIES)},
        "title": _TEXT,
        "action": {**_TEXT, "description": "What to do"},
        "saving_pct": {**_NUMBER, "description": "Share of the launch's duration, as ncu estimates it"},
    }
    strategy = {
        "strategy": _TEXT,
        "title": _TEXT,
        "effort": {"enum": list(EFFORTS)},
        "rules": {**_TEXTS, "description": "The findings behind it"},
        "least_saving_pct": {"type": "number", "description": "Share of the kernel's time"},
        "most_saving_pct": {"type": "number"},
        "least_wall_pct": {**_NUMBER, "description": "Share of the trace's wall time, if a trace is given"},
        "most_wall_pct": _NUMBER,
        "more_registers": {"type": "integer"},
        "more_shared_bytes": {"type": "integer"},
        "conflicts": {**_NAMED, "description": "Strategies that it cannot be combined with, and why"},
    }
    target = {"target": _TEXT, "value_pct": _NUMBER, "target_pct": _NUMBER, "met": {"type": "boolean"}}
    kernel = {
        **_of_view("ncu_kernels"),
        "launches": {"type": "array", "items": {"type": "integer"}, "description": "The launches that it stands for"},
        "total_ns": {"type": "number", "description": "Sum of their durations under ncu"},
        "share_pct": {**_NUMBER, "description": "Share of the durations of all profiled launches"},
        "trace": {
            "anyOf": [headroom["properties"]["rows"]["items"], {"type": "null"}],
            "description": "Its row of headroom, if a trace is given",
        },
        "wall_pct": {**_NUMBER, "description": "Its share of that trace's wall time"},
        "diagnostics": {**_NAMED, "description": "What was measured, section by section"},
        "findings": _many(json_schema.object_of({
            **finding,
            "evidence": {"type": "object", "description": "Columns of ncu_kernels that prove it"},
            "estimate": {"type": ["string", "null"], "description": "The ncu rule that saving_pct is from"},
        })),
        "strategies": _many(json_schema.object_of(strategy)),
        "next": {**_TEXTS, "description": "What to measure next"},
        "unjudged": {
            "type": "object", "additionalProperties": _TEXTS,
            "description": "Metrics that were not collected, and the rules that need them",
        },
        "remarks": _many(json_schema.object_of(_of_view("ncu_rules"))),
        "conclusion": _NAMED,
        "targets": _many(json_schema.object_of(target)),
    }  # fmt: skip
    priority = {"kernel": _TEXT, "launch": {"type": "integer"}, **finding, "saving_ns": _NUMBER, "basis": _TEXT}
    report = {
        "schema": {"const": SCHEMA},
        "report": {"const": "ncu report"},
        "name": _TEXT,
        "gpu": _TEXT,
        "notes": _TEXTS,
        "kernels": _many(json_schema.object_of(kernel)),
        "priorities": {**_many(json_schema.object_of(priority)), "description": "What to do first"},
    }
    return {
        "$schema": json_schema.DIALECT,
        "title": "What ncu's metrics say, kernel by kernel",
        **json_schema.object_of(report),
    }


def _of_dataclass(kind: type) -> dict[str, Schema]:
    """The fields of a dataclass as properties; those that hold other dataclasses are the caller's to say."""
    return {one.name: _FIELDS.get(str(one.type), {}) for one in fields(kind)}


def _of_view(view: str) -> dict[str, Schema]:
    from nsys_insight.session.schema import described

    columns = (Column(row["column"], row["type"], row["description"] or "") for row in described(view).dicts())
    return {column.name: json_schema.cell(column) for column in columns}


def _many(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_OTHERS: dict[str, Callable[[], Schema]] = {
    "diagnose": _diagnose,
    "diff": _diff,
    "check": _check,
    "packs": _packs,
    "sql": lambda: json_schema.any_answer("The answer to a query", "sql"),
    "answer": lambda: json_schema.any_answer("What all answers share"),
    "error": json_schema.error,
    "bench": _bench,
    "experiment": _experiment,
    "sass": _sass,
    "ptxas": _ptxas,
    "ncu-plan": _ncu_plan,
    "ncu-roofline": _ncu_roofline,
    "ncu-diff": _ncu_diff,
    "ncu-report": lambda: _ncu_report(schema_of("headroom")),
}
