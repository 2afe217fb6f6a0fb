"""The commands ``sql``, for any question about one trace or several, and ``schema``, for what can be asked."""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight.cli import completion, terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, FormatOption, argument, checked_format, flag, with_flags
from nsys_insight.cli.run import explain, open_traces, show
from nsys_insight.errors import MetLateError, UsageError
from nsys_insight.render import HUMAN_FORMATS
from nsys_insight.sql.statements import split, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_insight.sql.statements import Statement
    from nsys_insight.trace import Trace

_TEXT = """Query the model's views in DuckDB's SQL (nsys-insight schema lists them).

The last argument is the SQL, unless --file or a pipe provides it; those before it are traces. With several traces (a
folder stands for all traces in it), every view has a column trace. SQL may be several statements: queries, and CREATE
TEMP TABLE, VIEW
or MACRO for those after it. The tables as nsys exported them are in the schema raw."""
_EXAMPLE = 'nsys-insight sql trace.sqlite "SELECT name, count(*) FROM kernels GROUP BY ALL"'
_TRACE_SUFFIXES = (".sqlite", ".nsys-rep", ".qdrep", ".duckdb")
# Formats whose rows are written while the query still runs.
_STREAMED = ("csv", "jsonl", "parquet")


def sql_command() -> Callable[..., None]:
    """Make the command ``sql``."""

    def run(
        arguments: list[str] | None, flags: Flags, *, file: Path | None, param: list[str] | None, profile: bool
    ) -> None:
        traces, text = _traces_and_query(arguments or [], file)
        statements = split(text, dict(map(_param, param or [])))
        if flags.explain:
            for statement in statements:
                explain(statement.sql, "sql", {})
            return
        started = time.perf_counter()
        with open_traces(traces, flags, folders=True) as opened:
            opened_s = time.perf_counter() - started
            rows = answer_all(opened, statements, flags)
        if profile:
            _profile(opened_s, time.perf_counter() - started - opened_s, rows)

    return with_flags(
        run,
        _TEXT,
        flag("file", Path | None, "--file", help="Read the SQL from this file; - is standard input."),
        flag("param", list[str] | None, "--param", "-p", help="name=value: replaces $name."),
        flag("profile", bool, "--profile", help="Report the time and the memory used."),
        argument=argument("arguments", list[str] | None, "[TRACE]... [SQL]", "Traces, and the SQL."),
    )


def answer_all(opened: Trace, statements: Sequence[Statement], flags: Flags) -> int:
    """Run statements and show what each query answers; return how many rows they had.

    Raises:
        QueryError: One failed; those before it are shown.
        UsageError: A machine format was asked for, and there are several queries.
    """
    output, fmt = flags.output, flags.format
    queries = [statement for statement in statements if not statement.creates]
    if not queries:
        raise UsageError("there is no query", f"end with one: {_EXAMPLE}")
    if len(queries) > 1 and (output or fmt not in HUMAN_FORMATS):
        where = str(output) if output else f"--format {fmt}"
        raise UsageError(f"{where} takes one answer, but there are {len(queries)} queries", "run them one by one")
    rows = 0
    for statement in statements:
        if statement.creates:
            opened.define(statement)
            continue
        if rows:
            print()
        try:
            rows += _shown(opened, statement, flags)
        except MetLateError:
            if not output:
                raise
            rows += _shown(opened, statement, flags)
    return rows


def _shown(opened: Trace, statement: Statement, flags: Flags) -> int:
    """Show what a query answers; return how many rows it had."""
    stream = flags.format in _STREAMED and not flags.limit
    answer = opened.stream(statement) if stream else opened.execute(statement)
    if flags.format != "parquet":
        _ = answer.columns  # a query that cannot run leaves the file as it is
    show(answer, flags.format, flags)
    return answer.row_count


def _traces_and_query(arguments: Sequence[str], file: Path | None) -> tuple[list[Path], str]:
    """Tell traces from the query, wherever that comes from."""
    traces = list(arguments)
    text = None
    if file:
        with suppress(FileNotFoundError, IsADirectoryError):
            # SQL that is not UTF-8 is refused by the parser.
            text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8", errors="surrogateescape")
        if text is None:
            raise UsageError(f"there is no file {file}", "-f is the file with the SQL; set a format with --format csv")
    elif traces and traces[-1] == "-":
        traces.pop()
        text = sys.stdin.read()
    elif traces and _is_query(traces[-1]):
        text = traces.pop()
    elif len(queries := [each for each in traces if " " in each and _is_query(each)]) == 1:
        text = queries[0]
        traces.remove(text)
    elif not sys.stdin.isatty():
        text = sys.stdin.read()
    if not text or not text.strip():
        raise UsageError("there is no query", _EXAMPLE)
    return [Path(trace) for trace in traces], text


def _is_query(argument: str) -> bool:
    # A query may be too long to be looked for as a file, which pathlib does not forgive.
    return not os.path.exists(argument) and not argument.endswith(_TRACE_SUFFIXES)  # noqa: PTH110


def _param(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError(f"--param cannot be {text!r}", "write --param name=value, and $name in the SQL")
    return name, value_of(value)


def _profile(opened_s: float, answered_s: float, rows: int) -> None:
    memory = ""
    # Linux alone says it of this program; getrusage counts in what started it.
    with suppress(OSError):
        most = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
        memory = f", at most {int(most[1]) / 2**10:,.0f} MiB in memory" if most else ""
    terminal.note(f"opened in {opened_s:.3f} s, answered in {answered_s:.3f} s: {rows:,} rows{memory}")


def schema(
    view: Annotated[
        str | None,
        typer.Argument(
            help="A view, or with --json a report; by default, all of them.",
            show_default=False,
            autocompletion=completion.reports_and_views,
        ),
    ] = None,
    fmt: FormatOption = "table",
    every: Annotated[bool, typer.Option("--all", help="Also views that only other views use.")] = False,  # noqa: FBT002 - a flag
    as_json: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--json", help="Print the JSON Schema of what a command writes under --format json.")
    ] = False,
) -> None:
    """Describe the views that sql can query, and their columns; or with --json the JSON that commands write.

    --json takes a report, diagnose, diff, check, sql, packs, bench, experiment, sass, ptxas, ncu-plan, ncu-report,
    ncu-roofline, ncu-diff, answer (what all share) or error; by default, all of them.
    """
    if as_json:
        import json

        from nsys_insight.cli.json_schema import schema_of

        print(json.dumps(schema_of(view), indent=2))
        return
    from nsys_insight.session.schema import described

    show(described(view, internal=every), checked_format(fmt), Flags(limit=0))


SQL = Command(
    "sql",
    sql_command,
    group="ask",
    place=100,
    help="Query the model's views in DuckDB's SQL",
    examples=(
        'sql trace.nsys-rep "SELECT name, count(*) FROM kernels GROUP BY ALL"',
        "sql trace.nsys-rep --file query.sql --format csv -o rows.csv",
    ),
)


SCHEMA = Command(
    "schema",
    lambda: schema,
    group="ask",
    place=150,
    help="Describe the views that sql can query, and their columns",
    examples=("schema kernels", "schema --json top"),
)
