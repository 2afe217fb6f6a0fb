"""What a command does: open the trace that the user means, ask, and write the answer as the flags say."""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nsys_insight import outputs, progress
from nsys_insight.cli import terminal
from nsys_insight.cli.flags import DEFAULT_LIMIT, DEFAULTS, LOADING, Flags, flag_of, traces_argument, with_flags
from nsys_insight.cli.progress_line import progress_line
from nsys_insight.errors import UsageError
from nsys_insight.ingest import cache_folder
from nsys_insight.ingest.facts_folder import failed_of
from nsys_insight.packs import added
from nsys_insight.packs.step_options import params_of
from nsys_insight.render import HUMAN_FORMATS, write
from nsys_insight.session.report_question import is_of_run
from nsys_insight.sql.names import mentioned, tables_read
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsys_insight.packs.pack import Pack
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.running_answer import RunningAnswer
    from nsys_insight.trace import Trace


# So many files are named in a note.
_NAMED = 3


@dataclass(frozen=True)
class Host:
    """What runs commands over a trace that it has open, such as the shell.

    Attributes:
        trace: Gives the trace in the scope that flags say.
        show: Shows an answer; `fmt` is the format that was asked for, None where none was.
    """

    trace: Callable[[Flags], Trace]
    show: Callable[[Answer, str | None, Flags], None]


_host: ContextVar[Host | None] = ContextVar("host", default=None)


@contextmanager
def hosted(host: Host | None) -> Iterator[None]:
    """Let commands that run in the block ask the host's trace, and show their answers there."""
    token = _host.set(host)
    try:
        yield
    finally:
        _host.reset(token)


def pack_command(pack: Pack) -> Callable[..., None]:
    """Make the command of a pack."""

    def run(traces: list[Path] | None, flags: Flags, **params: Any) -> None:
        answer_pack(pack, traces, flags, params)

    of_ranks = [] if is_of_run(pack) else [added.PARAM]
    own = map(flag_of, [*pack.params.values(), *params_of(pack.sql).values(), *of_ranks])
    return with_flags(run, help_of(pack), *own, argument=traces_argument())


def answer_pack(pack: Pack, traces: Sequence[Path] | None, flags: Flags, params: dict[str, Any]) -> None:
    """Answer a pack, and show the answer; or print what would be asked.

    Raises:
        InsightError: Any of that went wrong.
    """
    if flags.explain:
        statement, values = pack.statement({name: params[name] for name in pack.params})
        explain(statement, f"{pack.name}: {pack.title}", values)
        return
    fmt = flags.format
    with open_traces(traces or [], flags, folders=is_of_run(pack)) as opened:
        # A parameter of a user's report may be called steps, too.
        steps: dict[str, Any] = vars(flags.steps) if "steps" in pack.params else {"steps": flags.steps}
        show(opened.answer(pack, **params, **(steps if params_of(pack.names) else {})), fmt, flags)


def help_of(pack: Pack) -> str:
    """The help of a pack's command: its header as a text."""
    columns = "\n".join(f"{name}: {text}.\n" for name, text in pack.columns.items())
    return f"{pack.title}.\n\n{pack.description}\n\nReading: {pack.reading}\n\nColumns:\n\n{columns}"


def open_traces(traces: Sequence[Path], flags: Flags, *, folders: bool = False) -> Trace:
    """Open the traces that the user means, in the scope that the flags give; a single one is remembered in this folder.

    With `folders`, a folder stands for all traces in it; else it stands for the only one, unless it is a fleet's.
    """
    from nsys_insight.cli.trace_argument import is_pattern, remember, resolve_all

    if host := _host.get():
        if traces or any(getattr(flags, name) is not None for name in LOADING):
            raise UsageError("the trace is open already", "omit its name, and the options for opening it")
        return cast("Trace", nullcontext(host.trace(flags)))
    scope, timeout_s = flags.scope, flags.timeout_s
    fleets = {trace: failed for trace in traces if (failed := failed_of(trace)) is not None}
    if len(traces) > 1 or (traces and (folders or fleets or is_pattern(traces[0]))):
        paths = resolve_all(traces)
    else:
        paths = [meant_trace(traces[0] if traces else None)]
    outputs.check(flags.output, [*paths, *([flags.ncu] if flags.ncu else [])])
    opened = open_trace(
        *paths,
        scope=scope,
        steps=flags.steps,
        memory=flags.memory,
        threads=flags.threads,
        timeout_s=timeout_s,
        use_cache=flags.cache,
        ncu=flags.ncu,
    )
    outputs.check(flags.output, [opened.ncu] if opened.ncu else [])
    if flags.cache is not False and (why := cache_folder.refusal()):
        terminal.note(f"{not_used(why)}; name one of your own in ${cache_folder.FOLDER_VARIABLE}")
    if len(paths) == 1 and flags.cache is not False:
        remember(paths[0])
    for folder, failed in fleets.items():
        if failed:
            names = ", ".join(list(failed)[:_NAMED]) + (" …" if len(failed) > _NAMED else "")
            them = "1 trace is" if len(failed) == 1 else f"{len(failed):,} traces are"
            terminal.note(f"{them} not in {folder}: fleet could not read {names}")
    return opened


def not_used(why: str) -> str:
    """Say why the cache folder is not used (`cache_folder.refusal`)."""
    return f"the cache folder {cache_folder.location()} is not used: {why}"


def open_trace(*paths: Path, **options: Any) -> Trace:
    """Open traces with the options of `session.Session`; notes and the progress of an export go to the terminal."""
    from nsys_insight.trace import Trace

    with progress.at(f"opening {paths[0].name}") as task:
        return Trace(paths, note=terminal.note, progress=exporting(task, paths[0].name), **options)


def exporting(task: progress.Task, name: str) -> Callable[[int], None]:
    """Make what shows the percentage while nsys exports a report."""

    def tell(percent: int) -> None:
        task.text, task.percent = f"exporting {name}", percent

    return tell


def meant_trace(argument: Path | None) -> Path:
    """Return the trace that is meant where the argument may be left out, and say which if it is."""
    from nsys_insight.cli.trace_argument import resolve

    path, said = resolve(argument)
    if said:
        terminal.note(said)
    return path


def show(
    answer: Answer | RunningAnswer, fmt: str, flags: Flags = DEFAULTS, *, default_limit: int = DEFAULT_LIMIT
) -> None:
    """Write an answer to stdout or a file, and what must be known beside it to stderr.

    A table of more rows than `default_limit` is cut to that, unless only a few would be left out; 0 cuts none.
    """
    limit, output = flags.limit, flags.output
    if flags.columns is not None:
        answer = cast("Answer", answer).of_columns([name.strip() for name in flags.columns.split(",")])
    if (host := _host.get()) and not output:
        with hosted(None):
            host.show(cast("Answer", answer), flags.fmt, flags)
        return
    is_cut = fmt in HUMAN_FORMATS and not output and answer.row_count > 1.5 * default_limit
    if limit is None and default_limit and is_cut:
        limit = default_limit
    with progress.at(f"writing {output.name}") if output else progress_line.paused():
        write(
            cast("Answer", answer),  # a running one has what the formats ask of it that it is written in
            output or sys.stdout,
            fmt,
            limit=limit or None,
            width=None if output else terminal.width(),
            color=terminal.color(wanted=not flags.no_color and not output),
            full_names=flags.full_names,
            wide=flags.wide,
            csv_safe=flags.csv_safe,
        )
        sys.stdout.flush()
    if fmt == "json":  # which holds them
        return
    for text in answer.notes:
        terminal.note(text)
    if limit and limit < answer.row_count:
        terminal.note(f"{limit} of {answer.row_count:,} rows shown; --limit 0 shows all")


def picture_of(output: Path | None) -> str | None:
    """The suffix of a file that is to be a picture."""
    from nsys_insight.render import roofline

    suffix = output.suffix.lower() if output else ""
    return suffix if suffix in roofline.PICTURES else None


def draw(answer: Answer, output: Path | None, limit: int | None) -> None:
    """Draw an answer, and say its notes.

    Raises:
        UsageError: There is nothing to draw, or the file cannot be written.
    """
    from nsys_insight.render import roofline

    drawn = roofline.draw(answer, picture_of(output), limit=limit, width=terminal.width())
    if output is None:
        print(drawn)
    else:
        outputs.save(output, drawn)
    for text in answer.notes:
        terminal.note(text)


def explain(statement: str, title: str, values: dict[str, Any]) -> None:
    """Print the SQL that would run, its parameters, and the views it reads."""
    from nsys_insight.model.views import views_read

    reads = tables_read(statement)
    made_of = [view.name for view in views_read(mentioned(statement)) if view.name not in reads]
    lines = [
        title,
        *(f"${name} = {literal(value)}" for name, value in values.items()),
        f"reads {', '.join(reads)}",
        *([f"which are made of {', '.join(made_of)}"] if made_of else []),
    ]
    print("/* " + "\n   ".join(lines) + " */")
    print(statement)
