"""The commands ``sql``, which queries one or several traces, and ``schema``, which describes the views."""

from __future__ import annotations

import json
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
from nsys_insight.cli.flags import Flags, FormatOption, check_format, make_argument, make_command, make_flag
from nsys_insight.cli.run import explain, open_traces, show
from nsys_insight.errors import UnreadableRowError, UsageError
from nsys_insight.render import BINARY_FORMATS, HUMAN_FORMATS
from nsys_insight.sql.statements import Statement, parse_value, split_statements
from nsys_insight.text.cells import ELLIPSIS, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_insight.session.session import Session

_SQL_HELP = """Query the model's views in DuckDB's SQL (nsys-insight schema lists them).

The last argument is the SQL, unless --file or a pipe provides it; those before it are traces. With several traces (a
folder stands for all traces in it), every view has a column trace. SQL may be several statements: queries, and CREATE
TEMP TABLE, VIEW or MACRO for those after it. The tables as nsys exported them are in the schema raw. A division by 0
is NULL."""
_EXAMPLE = 'nsys-insight sql trace.sqlite "SELECT name, count(*) FROM kernels GROUP BY ALL"'
_TRACE_SUFFIXES = (".sqlite", ".nsys-rep", ".qdrep", ".duckdb")
_QUERY_CHARS = 70  # of a query that the heading of its result shows
# Formats that write rows while the query still runs.
_STREAMED_FORMATS = ("csv", "jsonl", *BINARY_FORMATS)


def make_sql_command() -> Callable[..., None]:
    """Make the command ``sql``."""

    def run(
        arguments: list[str] | None, flags: Flags, *, file: Path | None, param: list[str] | None, profile: bool
    ) -> None:
        _ = flags.format  # raises for -f q.sql, which would leave no query
        traces, text = _split_traces_and_query(arguments or [], file)
        statements = split_statements(text, dict(map(_parse_param, param or [])))
        if flags.explain:
            for statement in statements:
                explain(statement.sql, "sql", {})
            return
        started = time.perf_counter()
        with open_traces(traces, flags, can_expand_folders=True) as trace:
            opened_s = time.perf_counter() - started
            rows = run_statements(trace, statements, flags)
        if profile:
            _report_profile(opened_s, time.perf_counter() - started - opened_s, rows)

    return make_command(
        run,
        _SQL_HELP,
        make_flag("file", Path | None, "--file", help="Read the SQL from this file; - is standard input."),
        make_flag("param", list[str] | None, "--param", "-p", help="name=value: replaces $name."),
        make_flag("profile", bool, "--profile", help="Report the time and the memory used."),
        argument=make_argument("arguments", list[str] | None, "[TRACE]... [SQL]", "Traces, and the SQL."),
    )


def run_statements(trace: Session, statements: Sequence[Statement], flags: Flags) -> int:
    """Run statements and show the answer of each query; return the total number of rows.

    Raises:
        QueryError: A statement failed. Earlier answers are already shown.
        UsageError: There is no query, or several queries for one file or machine format.
    """
    output, fmt = flags.output, flags.format
    queries = [statement for statement in statements if not statement.defined_name]
    if not queries:
        raise UsageError("there is no query", f"end with one: {_EXAMPLE}")
    if len(queries) > 1 and (output or fmt not in HUMAN_FORMATS):
        target = str(output) if output else f"--format {fmt}"
        raise UsageError(f"{target} takes one answer, but there are {len(queries)} queries", "run them one by one")
    row_count = shown_count = 0
    for statement in statements:
        if statement.defined_name:
            trace.define(statement)
            continue
        if len(queries) > 1:
            separator = "\n" if shown_count else ""
            print(f"{separator}Query {shown_count + 1} of {len(queries)}: {name_query(statement.sql)}\n")
        shown_count += 1
        try:
            row_count += _show_query(trace, statement, flags)
        except UnreadableRowError:
            if not output:
                raise
            row_count += _show_query(trace, statement, flags)
    return row_count


def name_query(sql: str) -> str:
    """Return the first words of a query, in one line, for the heading of its result."""
    text = printable(" ".join(sql.split()))
    return text if len(text) <= _QUERY_CHARS else text[: _QUERY_CHARS - 1] + ELLIPSIS


def _show_query(trace: Session, statement: Statement, flags: Flags) -> int:
    """Show the answer of a query; return its number of rows."""
    is_streamed = flags.format in _STREAMED_FORMATS and not flags.limit
    answer = trace.stream(statement) if is_streamed else trace.execute(statement)
    if flags.format not in BINARY_FORMATS:
        _ = answer.columns  # raises before writing if the query cannot run, so the file stays unchanged
    show(answer, flags.format, flags)
    return answer.row_count


def _split_traces_and_query(arguments: Sequence[str], file: Path | None) -> tuple[list[Path], str]:
    """Split the arguments into traces and query. The query may also come from a file or stdin."""
    traces = list(arguments)
    text = None
    for argument in traces:
        if argument.lower().endswith(".sql") and not any(map(str.isspace, argument)):
            raise UsageError(f"{argument} is the name of a file, not a query", f"read the SQL in it: --file {argument}")
    if file:
        with suppress(FileNotFoundError, IsADirectoryError):
            # The parser rejects SQL that is not UTF-8.
            text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8", errors="surrogateescape")
        if text is None:
            raise UsageError(f"there is no file {file}", "--file is the file with the SQL; -f is a format")
    elif traces and traces[-1] == "-":
        traces.pop()
        text = sys.stdin.read()
    elif traces and _is_query(traces[-1]):
        text = traces.pop()
    elif len(queries := [argument for argument in traces if " " in argument and _is_query(argument)]) == 1:
        text = queries[0]
        traces.remove(text)
    elif not sys.stdin.isatty():
        text = sys.stdin.read()
    if not text or not text.strip():
        raise UsageError("there is no query", _EXAMPLE)
    return [Path(trace) for trace in traces], text


def _is_query(argument: str) -> bool:
    # os.path.exists accepts a query that is too long for a file name; pathlib raises an error.
    return not os.path.exists(argument) and not argument.endswith(_TRACE_SUFFIXES)  # noqa: PTH110


def _parse_param(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError(f"--param cannot be {text!r}", "write --param name=value, and $name in the SQL")
    return name, parse_value(value)


def _report_profile(opened_s: float, answered_s: float, rows: int) -> None:
    memory = ""
    # Only Linux has it for this process; the value of getrusage may include the parent process.
    with suppress(OSError):
        peak_match = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
        memory = f", at most {int(peak_match[1]) / 2**10:,.0f} MiB in memory" if peak_match else ""
    terminal.note(f"opened in {opened_s:.3f} s, answered in {answered_s:.3f} s: {rows:,} rows{memory}")


def schema(
    view: Annotated[
        str | None,
        typer.Argument(
            help="A view, or with --json a report; by default, all of them.",
            autocompletion=completion.complete_reports_and_views,
        ),
    ] = None,
    fmt: FormatOption = "table",
    has_internal_views: Annotated[bool, typer.Option("--all", help="Also views that only other views use.")] = False,  # noqa: FBT002 - a flag
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", min=500, metavar="N", help="The main views with their columns, in N characters of text."
        ),
    ] = None,
    as_json: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--json", help="Print the JSON Schema of what a command writes under --format json.")
    ] = False,
) -> None:
    """Describe the views that sql can query, and their columns; or with --json the JSON that commands write.

    --json takes a report, brief, diagnose, diff, check, sql, packs, bench, experiment, sass, ptxas, ncu-plan,
    ncu-report, ncu-roofline, ncu-diff, answer (what all share) or error; by default, all of them.
    """
    if as_json:
        from nsys_insight.cli.json_schema import get_schema

        print(json.dumps(get_schema(view), indent=2))
        return
    from nsys_insight.session.schema import describe_schema, write_views

    if budget is not None:
        print(write_views(view, budget), end="")
        return
    if view is not None and Path(view).exists():
        terminal.note("every trace has these views")
        view = None
    show(describe_schema(view, internal=has_internal_views), check_format(fmt), Flags(limit=0))


SQL = Command(
    "sql",
    make_sql_command,
    group="ask",
    place=100,
    in_help=True,
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
