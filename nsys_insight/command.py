"""What a command does: open the trace that the user means, ask, and write the answer as the flags say."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight import packs, steps, terminal
from nsys_insight.errors import UsageError
from nsys_insight.flags import DEFAULT_LIMIT, flag_of, scope_of, with_flags
from nsys_insight.render import FORMATS, HUMAN_FORMATS, format_for, write
from nsys_insight.sqltext import literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.answer import Answer
    from nsys_insight.packs import Pack
    from nsys_insight.trace import Trace


def pack_command(pack: Pack) -> Callable[..., None]:
    """Make the command of a pack."""
    about_steps = steps.PARAMS if steps.needed(pack.sql) else {}

    def run(trace: Path | None, **given: Any) -> None:
        asked = {name: given.pop(name) for name in about_steps}
        params = {name: given.pop(name) for name in pack.params}
        if given["explain"]:
            statement, values = pack.statement(params)
            explain(statement, f"{pack.name}: {pack.title}", values)
        else:
            report(trace, given, lambda opened: opened.answer(pack.name, **params, **asked))

    return with_flags(run, _help_of(pack), *map(flag_of, [*pack.params.values(), *about_steps.values()]))


def _help_of(pack: Pack) -> str:
    columns = "\n".join(f"{name}: {text}.\n" for name, text in pack.columns.items())
    return f"{pack.title}.\n\n{pack.description}\n\nReading: {pack.reading}\n\nColumns:\n\n{columns}"


def classify_command() -> Callable[..., None]:
    """Make the command ``classify``: what bounds the steady state, or each kernel."""
    whole, each = packs.find("classify"), packs.find("classify-kernels")
    mine = {**whole.params, **steps.PARAMS}

    def run(trace: Path | None, *, kernels: bool, **given: Any) -> None:
        for param in (mine if kernels else each.params).values():
            if given[param.name] != (str(param.default) if param.has_unit else param.default):
                told = "without" if kernels else "with"
                raise UsageError(f"{param.flag} is for classify {told} --kernels", "nsys-insight classify --help")
        pack_command(each if kernels else whole)(trace, **given)

    option = Annotated[bool, typer.Option("--kernels", help="Say what bounds each kernel, as classify-kernels does.")]
    own = inspect.Parameter("kernels", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option)
    return with_flags(run, _help_of(whole), own, *map(flag_of, [*mine.values(), *each.params.values()]))


def roofline_command() -> Callable[..., None]:
    """Make the command ``roofline``: its pack as a table, or drawn."""
    pack = packs.find("roofline")

    def run(trace: Path | None, *, plot: bool, **given: Any) -> None:
        output: Path | None = given["output"]
        picture = output is not None and output.suffix.lower() == ".svg"
        if given["explain"] or not (plot or picture):
            pack_command(pack)(trace, **given)
            return
        from nsys_insight import roofline

        params = {name: given[name] for name in pack.params}
        with open_trace(trace, given) as opened:
            answer = opened.answer(pack.name, **params)
            drawn = roofline.draw(answer, limit=given["limit"], width=terminal.width(), as_svg=picture)
        if output is None:
            print(drawn)
        else:
            save(output, drawn)
        for text in answer.notes:
            terminal.note(text)

    option = Annotated[bool, typer.Option("--plot", help="Draw it with characters; -o roofline.svg draws a picture.")]
    own = inspect.Parameter("plot", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option)
    return with_flags(run, _help_of(pack), own, *map(flag_of, pack.params.values()))


def save(path: Path, text: str) -> None:
    """Write a text to a file.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", "name a file in a folder that exists") from None


def sql_command() -> Callable[..., None]:
    """Make the command ``sql``."""

    def run(trace: Path | None, query: str | None, **given: Any) -> None:
        # One argument that is no file is the question, about the trace that would be used anyway.
        if query is None and trace is not None and not os.path.exists(trace):  # noqa: PTH110 - a query may be too long a name
            trace, query = None, str(trace)
        if query is None:
            raise UsageError(
                "there is no query", 'nsys-insight sql trace.sqlite "SELECT name, count(*) FROM kernels GROUP BY ALL"'
            )
        if given["explain"]:
            explain(query, "sql", {})
        else:
            report(trace, given, lambda opened: opened.query(query))

    argument = typer.Argument(metavar="QUERY", help="The query, in DuckDB's SQL.", show_default=False)
    own = inspect.Parameter(
        "query", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Annotated[str | None, argument]
    )
    return with_flags(run, "Ask any question in SQL over the model's views (nsys-insight schema lists them).", own)


def report(trace: Path | None, given: dict[str, Any], ask: Callable[[Trace], Answer]) -> None:
    """Open the trace, ask, and show the answer.

    Raises:
        InsightError: Any of that went wrong.
    """
    output: Path | None = given["output"]
    fmt = checked_format(given["fmt"] or (format_for(output) if output else "table"))
    with open_trace(trace, given) as opened:
        show(ask(opened), fmt, output, given["limit"], no_color=given["no_color"], full_names=given["full_names"])


def open_trace(trace: Path | None, given: dict[str, Any]) -> Trace:
    """Open the trace that the user means, in the scope that the flags give, and remember it for this folder."""
    from nsys_insight.resolve import remember, resolve
    from nsys_insight.trace import Trace

    scope = scope_of(given)
    path, said = resolve(trace)
    if said:
        terminal.note(said)
    with terminal.export_progress(path.name) as progress:
        opened = Trace(
            path,
            scope=scope,
            memory=given["memory"],
            use_cache=given["cache"],
            ncu=given["ncu"],
            note=terminal.note,
            progress=progress,
        )
    remember(path)
    return opened


def show(  # noqa: PLR0913 - the output flags, one by one
    answer: Answer,
    fmt: str = "table",
    output: Path | None = None,
    limit: int | None = None,
    *,
    no_color: bool = False,
    full_names: bool = False,
) -> None:
    """Write an answer to stdout or a file, and what must be known beside it to stderr."""
    # A table that would lose only a few rows is shown whole.
    if limit is None and fmt in HUMAN_FORMATS and not output and answer.row_count > 1.5 * DEFAULT_LIMIT:
        limit = DEFAULT_LIMIT
    write(
        answer,
        output or sys.stdout,
        fmt,
        limit=limit or None,
        width=None if output else terminal.width(),
        color=terminal.color(wanted=not no_color and not output),
        full_names=full_names,
    )
    sys.stdout.flush()
    for text in answer.notes:
        terminal.note(text)
    if limit and limit < answer.row_count:
        terminal.note(f"{limit} of {answer.row_count:,} rows shown; --limit 0 shows all")


def explain(statement: str, title: str, values: dict[str, Any]) -> None:
    """Print the SQL that would run, its parameters, and the views it reads."""
    from nsys_insight.model import needed

    reads = packs.tables_read(statement)
    made_of = [view.name for view in needed(statement) if view.name not in reads]
    lines = [
        title,
        *(f"${name} = {literal(value)}" for name, value in values.items()),
        f"reads {', '.join(reads)}",
        *([f"which are made of {', '.join(made_of)}"] if made_of else []),
    ]
    print("/* " + "\n   ".join(lines) + " */")
    print(statement)


def checked_format(fmt: str) -> str:
    """Return the format if there is one of that name.

    Raises:
        UsageError: There is none.
    """
    if fmt not in FORMATS:
        raise UsageError(f"there is no format {fmt!r}", f"choose one of: {', '.join(FORMATS)}")
    return fmt
