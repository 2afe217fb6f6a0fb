"""What a command does: open the trace that the user means, ask, and write the answer as the flags say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nsys_insight import packs, steps, terminal
from nsys_insight.errors import UsageError
from nsys_insight.flags import DEFAULT_LIMIT, flag_of, scope_of, timeout_of, with_flags
from nsys_insight.render import FORMATS, HUMAN_FORMATS, format_for, write
from nsys_insight.sqltext import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_insight.answer import Answer
    from nsys_insight.packs import Pack
    from nsys_insight.stream import Stream
    from nsys_insight.trace import Trace


def pack_command(pack: Pack) -> Callable[..., None]:
    """Make the command of a pack."""
    about_steps = steps.params_of(pack.sql)

    def run(trace: Path | None, **given: Any) -> None:
        asked = {name: given.pop(name) for name in about_steps}
        params = {name: given.pop(name) for name in pack.params}
        if given["explain"]:
            statement, values = pack.statement(params)
            explain(statement, f"{pack.name}: {pack.title}", values)
        else:
            report(trace, given, lambda opened: opened.answer(pack, **params, **asked))

    return with_flags(run, help_of(pack), *map(flag_of, [*pack.params.values(), *about_steps.values()]))


def help_of(pack: Pack) -> str:
    """The help of a pack's command: its header as a text."""
    columns = "\n".join(f"{name}: {text}.\n" for name, text in pack.columns.items())
    return f"{pack.title}.\n\n{pack.description}\n\nReading: {pack.reading}\n\nColumns:\n\n{columns}"


def save(path: Path, content: str | bytes) -> None:
    """Write a text or a picture to a file.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", "name a file in a folder that exists") from None


def report(trace: Path | None, given: dict[str, Any], ask: Callable[[Trace], Answer]) -> None:
    """Open the trace, ask, and show the answer.

    Raises:
        InsightError: Any of that went wrong.
    """
    fmt = format_of(given)
    with open_traces([trace] if trace else [], given) as opened:
        answer = ask(opened)
        show(answer, fmt, given["output"], given["limit"], no_color=given["no_color"], full_names=given["full_names"])


def open_traces(traces: Sequence[Path], given: dict[str, Any], *, several: bool = False) -> Trace:
    """Open the trace that the user means, in the scope that the flags give; a single one is remembered in this folder.

    With `several` there may be more than one, and a folder stands for all in it.
    """
    from nsys_insight.resolve import remember, resolve, resolve_all
    from nsys_insight.trace import Trace

    scope, timeout_s = scope_of(given), timeout_of(given)
    if traces and several:
        paths = resolve_all(traces)
    else:
        path, said = resolve(traces[0] if traces else None)
        paths = [path]
        if said:
            terminal.note(said)
    with terminal.export_progress(paths[0].name) as progress:
        opened = Trace(
            paths,
            scope=scope,
            memory=given["memory"],
            timeout_s=timeout_s,
            use_cache=given["cache"],
            ncu=given["ncu"],
            note=terminal.note,
            progress=progress,
        )
    if len(paths) == 1:
        remember(paths[0])
    return opened


def format_of(given: dict[str, Any]) -> str:
    """The format that the flags ask for: by name, else by the suffix of the file.

    Raises:
        UsageError: There is none of that name.
    """
    output: Path | None = given["output"]
    return checked_format(given["fmt"] or (format_for(output) if output else "table"))


def show(  # noqa: PLR0913 - the output flags, one by one
    answer: Answer | Stream,
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
        cast("Answer", answer),  # a stream has what the formats ask of it that it is written in
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
