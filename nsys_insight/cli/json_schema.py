"""The JSON Schema of what a command writes under ``--format json``, by the command's name."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.packs import library, rank_sums
from nsys_insight.packs.rules import SEVERITIES
from nsys_insight.packs.step_options import step_params_of
from nsys_insight.render import json_schema
from nsys_insight.render.json_ import SCHEMA
from nsys_insight.session.answer import Column, read_columns
from nsys_insight.text.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.packs.pack import Pack, Param

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_NUMBER: Schema = {"type": "number"}
_NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
_INTEGER: Schema = {"type": "integer"}
_INTEGER_OR_NULL: Schema = {"type": ["integer", "null"]}
_BOOLEAN: Schema = {"type": "boolean"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_TEXT_BY_NAME: Schema = {"type": "object", "additionalProperties": _TEXT}
# The schema of a dataclass field, by the text of its annotation.
_FIELD_SCHEMAS: dict[str, Schema] = {
    "str": _TEXT, "bool": _BOOLEAN, "int": _INTEGER, "int | None": _INTEGER_OR_NULL, "str | None": _TEXT_OR_NULL,
    "float": _NUMBER, "float | None": _NUMBER_OR_NULL, "tuple[str, ...]": _TEXTS, "dict[str, str]": _TEXT_BY_NAME,
}  # fmt: skip


def get_schema(name: str | None) -> Schema:
    """Return the schema of a report, of another command's answer, or of an error; without a name, of all of them.

    Raises:
        UsageError: The name is unknown.
    """
    if name is None:
        schemas = {schema_name: get_schema(schema_name) for schema_name in list_schema_names()}
        return {
            "$schema": json_schema.DIALECT,
            "title": "What nsys-insight writes as JSON",
            "anyOf": [{"$ref": f"#/$defs/{schema_name}"} for schema_name in schemas],
            "$defs": schemas,
        }
    if make_schema := _COMMAND_SCHEMAS.get(name.replace(" ", "-")):
        return make_schema()
    if pack := library.find_pack(name) or library.find_pack(name.replace("_", "-")):
        return make_pack_schema(pack)
    hint = (
        did_you_mean(name, list_schema_names()) or f"nsys-insight schema --json takes: {', '.join(list_schema_names())}"
    )
    raise UsageError(f"there is no JSON of {name!r}", hint)


def list_schema_names() -> list[str]:
    """List the names that have a schema: the reports, and other commands."""
    return [*library.all_packs(), *_COMMAND_SCHEMAS]


def make_pack_schema(pack: Pack) -> Schema:
    """Make the schema of a report's answer. The column types come from running it over an empty model."""
    columns, other_columns, required = _list_columns(pack), [Column("rank", "BIGINT", "The rank, where known")], None
    if pack.ranks:  # summed over ranks, an answer has other columns
        sums = rank_sums.read_header(pack.ranks)
        types = {column.name: column.type for column in columns}
        counts = ("ranks", "max_rank")
        other_columns += [
            Column(name, "BIGINT" if name in counts else types[sums.spread], text)
            for name, text in sums.added_columns.items()
        ]
        required = [name for name in sums.describe_columns(pack.columns) if name in types]
        columns = [replace(column, type="DOUBLE") if column.name in sums.mean else column for column in columns]
    schema = json_schema.describe_answer(
        pack.name, pack.title, columns, pack.params | step_params_of(pack.names),
        other_columns=other_columns, required=required,
    )  # fmt: skip
    if pack.name == "info":
        schema["properties"]["summary"] = _describe_file_checks()  # only of the command
    return schema


def _list_columns(pack: Pack) -> list[Column]:
    from nsys_insight.session.model import empty_model

    with empty_model() as connection:
        column_rows = connection.execute(f"DESCRIBE {pack.statement({})[0]}").fetchall()
    return [Column(name, kind, pack.columns.get(name, "")) for name, kind, *_ in column_rows]


def _describe_file_checks() -> Schema:
    """Describe the summary of `info`: whether each trace holds what its file holds."""
    sums = json_schema.describe_object({"rows": _INTEGER, "time_ns": _INTEGER_OR_NULL, "size_bytes": _INTEGER_OR_NULL})
    table = {
        "table": _TEXT,
        "view": {**sums, "description": "Events of the view, and the sums of their durations and sizes"},
        "file": {**sums, "description": "The same, as SQLite adds up the rows of the table that count"},
        "file_rows": {**_INTEGER, "description": "Events of the table, also those that do not count"},
        "remarks": {**_TEXTS, "description": "Which rows do not count, and why"},
    }
    check = {
        "trace": _TEXT,
        "status": {"enum": ["equal", "different", "unchecked"]},
        "text": _TEXT,
        "tables": _make_array(table),
    }
    checks = {**_make_array(check), "description": "A check of each trace; none in a scope"}
    return json_schema.describe_object({"file_checks": checks})


def _make_diagnose_schema() -> Schema:
    from nsys_insight.diagnose.text import COLUMNS

    share_properties = {"part": _TEXT, "is_busy": _BOOLEAN, "time_ns": _NUMBER, "wall_pct": _NUMBER}
    summary = {
        "status": {"enum": ["findings", "healthy", "unjudged", "unseen", "empty"]},
        "verdict": {**_TEXT, "description": "What bounds the run"},
        "framework": {**_TEXT, "description": "The framework of the program; any if nothing shows it"},
        "per": {"enum": ["step", "token", "trace"], "description": "What times are given for"},
        "wall_ns": _NUMBER_OR_NULL,
        "tokens_per_s": _NUMBER_OR_NULL,
        "gpu_busy_pct": _NUMBER,
        "gpu_idle_pct": _NUMBER,
        "shares": {**_make_array(share_properties), "description": "They add up to 100%"},
        "steps": {"type": "object", "description": "How steps were found"},
        "not_judged": _make_array({"what": _TEXT, "how": _TEXT}),
        "run": {"type": "object", "description": "For the ranks of a run: which one the others wait for"},
    }
    step = {
        "source": {**_TEXT_OR_NULL, "description": "What the times come from; null if they are unknown"},
        "low_ns": _NUMBER_OR_NULL,
        "likely_ns": _NUMBER_OR_NULL,
        "high_ns": _NUMBER_OR_NULL,
        "verdict": {**_TEXT_OR_NULL, "description": "What bounds the step without nsys"},
        "unknown": {**_TEXT_OR_NULL, "description": "Why the times are unknown"},
    }
    summary["unprofiled"] = {
        **json_schema.describe_object(step),
        "type": ["object", "null"],
        "description": "The step without nsys; null without steady steps",
    }
    hidden_finding = dict.fromkeys(("code", "finding", "title", "severity", "of"), _TEXT) | {
        "recoverable_ns": _NUMBER_OR_NULL, "wall_pct": _NUMBER_OR_NULL,
    }  # fmt: skip
    left_out = {
        "file": {**_TEXT_OR_NULL, "description": "The settings file; null for flags"},
        "select": {**_TEXTS, "description": "The rules that it uses, all if this is empty"},
        "ignore": {**_TEXTS, "description": "The rules that it leaves out"},
        "rules": {**_TEXTS, "description": "The codes of all rules that are off"},
        "findings": {
            "type": ["array", "null"], "items": json_schema.describe_object(hidden_finding),
            "description": "What these rules find: it is hidden; null if they were not evaluated",
        },
    }  # fmt: skip
    summary["left_out"] = {
        **json_schema.describe_object(left_out),
        "description": "If a settings file or flags choose rules: what that leaves out",
    }
    required = [name for name in summary if name not in ("run", "left_out")]
    headline = json_schema.describe_object(summary, required)
    return json_schema.describe_answer("diagnose", "What bounds the run, and what to do first", COLUMNS, None, headline)


def _make_brief_schema() -> Schema:
    headline = _make_diagnose_schema()["properties"]["summary"]
    rows = {
        "findings": "The findings of diagnose, the largest possible saving first",
        "info": "Rows of the report info",
        "host": "Rows of the report host",
        "calls": "Rows of the report step-calls",
        "loops": "A typical iteration of each loop around the step",
        "nvtx": "NVTX ranges by level and name",
        "collectives": "Collectives of a step by operation and size",
        "devices": "The busy share of each GPU, for several GPUs",
        "ranks": "The mean times of each rank, for several ranks",
    }
    properties = headline["properties"] | {
        "program": {"type": "object", "description": "Processes, their threads, and those that launch"},
        **{name: {"type": "array", "items": {"type": "object"}, "description": text} for name, text in rows.items()},
    }
    required = [*headline["required"], "program", *rows]
    return json_schema.describe_answer(
        "brief",
        "A run in one page: the operations of a step",
        _list_columns(library.get_pack("step-operations")),
        None,
        json_schema.describe_object(properties, required),
    )


def _make_fixed_schema(name: str, title: str, module: str, params: dict[str, Param] | None = None) -> Schema:
    columns = import_module(f"nsys_insight.{module}").COLUMNS
    return json_schema.describe_answer(name.replace("-", " "), title, columns, params)


def _make_bench_schema() -> Schema:
    """Make the schema of `bench`: an answer about one command, or about two sides."""
    from nsys_insight.bench.answer import PAIR_COLUMNS, SINGLE_COLUMNS
    from nsys_insight.bench.checks import JSON_KEYS, Check
    from nsys_insight.bench.sanitizer import SanitizerError
    from nsys_insight.compare.verdict import Decision

    gpus = {"type": "array", "items": {"type": "object"}, "description": "Clocks, temperature, processes of each GPU"}
    check = {JSON_KEYS.get(name, name): schema for name, schema in _make_dataclass_properties(Check).items()}
    check["errors"] = _make_array(_make_dataclass_properties(SanitizerError))
    summary = {
        "conditions": {**_TEXT_BY_NAME, "description": "GPU, driver, clocks, commit"},
        "gpus_before": gpus,
        "gpus_after": gpus,
        "sides": _make_array({"label": _TEXT, "command": _TEXT, "parameters": _TEXT_BY_NAME}),
        "checks": _make_array(check),
        "tests_passed": {"type": ["boolean", "null"], "description": "Null: not checked"},
    }
    comparison_fields = {
        "decision": {"enum": [str(decision) for decision in Decision]},
        "different_parameters": {"type": "object", "additionalProperties": _TEXTS},
    }
    alternatives = (
        ("A benchmark", SINGLE_COLUMNS, summary),
        ("A benchmark, before and after", PAIR_COLUMNS, summary | comparison_fields),
    )
    answers = (
        json_schema.describe_answer("bench", title, columns, {}, json_schema.describe_object(properties))
        for title, columns, properties in alternatives
    )
    return json_schema.describe_alternatives("A benchmark", *answers)


def _make_experiment_schema() -> Schema:
    """Make the schema of every `experiment` command: rows and a summary of the tries."""
    from nsys_insight.experiment.log import Try

    summary = {
        "folder": _TEXT,
        "goal": _TEXT,
        "open": {**_INTEGER_OR_NULL, "description": "The try that waits for keep or revert"},
        "current": {**_INTEGER_OR_NULL, "description": "The try that the next one is compared with"},
        "tries": _make_array(_make_dataclass_properties(Try)),
    }
    return json_schema.describe_answer(
        "experiment", "Changes, one at a time", read_columns("cli/tries"), {}, json_schema.describe_object(summary)
    )


def _make_sass_schema() -> Schema:
    """Make the schema of `sass`: one answer for each value of `--by`."""
    from nsys_insight.kernel_code.sass import ANSWERS_BY_GROUPING

    answers = (
        json_schema.describe_answer("sass", title, columns, {}) for title, columns, _ in ANSWERS_BY_GROUPING.values()
    )
    return json_schema.describe_alternatives("Machine code of kernels", *answers)


def _make_ncu_plan_schema() -> Schema:
    """Make the schema of `ncu plan`: `params` has the ncu command, a row is a launch to profile."""
    from nsys_insight.ncu.plan import COLUMNS

    schema = json_schema.describe_answer("ncu plan", "Launches that ncu will profile", COLUMNS)
    schema["properties"]["params"] = json_schema.describe_object({"command": _TEXTS, "set": _TEXT})
    return schema


def _make_ncu_roofline_schema() -> Schema:
    """Make the schema of `ncu roofline`: an answer without a baseline, and one with it."""
    from nsys_insight.ncu.roofline import BASELINE_COLUMNS, COLUMNS

    title = "Kernels under the roofline, as ncu counted"
    return json_schema.describe_alternatives(
        title,
        json_schema.describe_answer("ncu roofline", title, COLUMNS, {}),
        json_schema.describe_answer("ncu roofline", f"{title}, beside a baseline", (*COLUMNS, *BASELINE_COLUMNS), {}),
    )


def _make_ncu_report_schema(headroom: Schema) -> Schema:
    """Make the schema of `ncu report`: an object with kernels. Each kernel has its row of the report `headroom`."""
    from nsys_insight.ncu.strategies import EFFORTS

    finding_properties = {
        "rule": _TEXT,
        "severity": {"enum": list(SEVERITIES)},
        "title": _TEXT,
        "action": {**_TEXT, "description": "What to do"},
        "saving_pct": {**_NUMBER_OR_NULL, "description": "Share of the launch's duration, as ncu estimates it"},
    }
    strategy_properties = {
        "strategy": _TEXT,
        "title": _TEXT,
        "effort": {"enum": list(EFFORTS)},
        "rules": {**_TEXTS, "description": "The findings behind it"},
        "least_saving_pct": {**_NUMBER, "description": "Share of the kernel's time"},
        "most_saving_pct": _NUMBER,
        "least_wall_pct": {**_NUMBER_OR_NULL, "description": "Share of the trace's wall time, if a trace is given"},
        "most_wall_pct": _NUMBER_OR_NULL,
        "more_registers": _INTEGER,
        "more_shared_bytes": _INTEGER,
        "conflicts": {**_TEXT_BY_NAME, "description": "Strategies that it cannot be combined with, and why"},
    }
    target_properties = {"target": _TEXT, "value_pct": _NUMBER_OR_NULL, "target_pct": _NUMBER_OR_NULL, "met": _BOOLEAN}
    kernel_properties = {
        **_make_view_properties("ncu_kernels"),
        "launches": {"type": "array", "items": _INTEGER, "description": "The launches that it stands for"},
        "total_ns": {**_NUMBER, "description": "Sum of their durations under ncu"},
        "share_pct": {**_NUMBER_OR_NULL, "description": "Share of the durations of all profiled launches"},
        "trace": {
            "anyOf": [headroom["properties"]["rows"]["items"], {"type": "null"}],
            "description": "Its row of headroom, if a trace is given",
        },
        "wall_pct": {**_NUMBER_OR_NULL, "description": "Its share of that trace's wall time"},
        "diagnostics": {**_TEXT_BY_NAME, "description": "What was measured, section by section"},
        "findings": _make_array({
            **finding_properties,
            "evidence": {"type": "object", "description": "Columns of ncu_kernels that prove it"},
            "estimate": {**_TEXT_OR_NULL, "description": "The ncu rule that saving_pct is from"},
        }),
        "strategies": _make_array(strategy_properties),
        "next": {**_TEXTS, "description": "What to measure next"},
        "unjudged": {
            "type": "object", "additionalProperties": _TEXTS,
            "description": "Metrics that were not collected, and the rules that need them",
        },
        "remarks": _make_array(_make_view_properties("ncu_rules")),
        "conclusion": _TEXT_BY_NAME,
        "targets": _make_array(target_properties),
    }  # fmt: skip
    priority_properties = {
        "kernel": _TEXT,
        "launch": _INTEGER,
        **finding_properties,
        "saving_ns": _NUMBER_OR_NULL,
        "basis": _TEXT,
    }
    report_properties = {
        "schema": {"const": SCHEMA},
        "report": {"const": "ncu report"},
        "name": _TEXT,
        "gpu": _TEXT,
        "notes": _TEXTS,
        "kernels": _make_array(kernel_properties),
        "priorities": {**_make_array(priority_properties), "description": "What to do first"},
    }
    return {
        "$schema": json_schema.DIALECT,
        "title": "What ncu's metrics say, kernel by kernel",
        **json_schema.describe_object(report_properties),
    }


def _make_dataclass_properties(kind: type) -> dict[str, Schema]:
    """Make a schema for each field of a dataclass. The caller describes fields that hold other dataclasses."""
    return {field.name: _FIELD_SCHEMAS.get(str(field.type), {}) for field in fields(kind)}


def _make_view_properties(view: str) -> dict[str, Schema]:
    from nsys_insight.session.schema import describe_schema

    columns = (Column(row["column"], row["type"], row["description"] or "") for row in describe_schema(view).dicts())
    return {column.name: json_schema.describe_cell(column) for column in columns}


def _make_array(properties: Schema) -> Schema:
    return {"type": "array", "items": json_schema.describe_object(properties)}


# Answers with fixed columns: the title, the module whose `COLUMNS` they are, and the parameters if they are known.
_FIXED_COLUMNS: dict[str, tuple[Any, ...]] = {
    "diff": ("Comparison of two runs", "compare.answer"),
    "check": ("A run against a budget", "compare.budgets"),
    "fleet": ("Facts of each trace", "fleet.fleet"),
    "packs": ("The reports", "cli.commands.packs"),
    "ptxas": ("Resources of kernels", "kernel_code.ptxas", {}),
    "ncu-diff": ("Two ncu measurements", "ncu.diff", {}),
}
_COMMAND_SCHEMAS: dict[str, Callable[[], Schema]] = {
    "brief": _make_brief_schema,
    "diagnose": _make_diagnose_schema,
    **{name: partial(_make_fixed_schema, name, *answer) for name, answer in _FIXED_COLUMNS.items()},
    "sql": lambda: json_schema.describe_any_answer("The answer to a query", "sql"),
    "answer": lambda: json_schema.describe_any_answer("What all answers share"),
    "error": json_schema.describe_error,
    "bench": _make_bench_schema,
    "experiment": _make_experiment_schema,
    "sass": _make_sass_schema,
    "ncu-plan": _make_ncu_plan_schema,
    "ncu-roofline": _make_ncu_roofline_schema,
    "ncu-report": lambda: _make_ncu_report_schema(get_schema("headroom")),
}
