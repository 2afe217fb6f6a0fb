"""The steps of a command: open the trace, answer the question, write the answer according to the flags."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from nsys_insight import cache_folder, outputs, progress
from nsys_insight.cli import terminal
from nsys_insight.cli.flags import (
    DEFAULT_FLAGS,
    DEFAULT_LIMIT,
    LOADING_FLAGS,
    Flags,
    make_command,
    make_param_flag,
    make_traces_argument,
)
from nsys_insight.cli.progress_line import progress_line
from nsys_insight.errors import UsageError
from nsys_insight.ingest.facts_folder import read_failures
from nsys_insight.model.views import views_read
from nsys_insight.packs import rank_sums
from nsys_insight.packs.step_options import step_params_of
from nsys_insight.render import HUMAN_FORMATS, write
from nsys_insight.session.report_question import is_cross_rank
from nsys_insight.sql.names import list_tables_read, parse_names
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nsys_insight.packs.pack import Pack
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.running_answer import RunningAnswer
    from nsys_insight.session.session import Session


# Maximum number of files that a note names.
_MAX_NAMED_FILES = 3


@dataclass(frozen=True)
class Host:
    """A program that runs commands over its own open trace, such as the shell.

    Attributes:
        get_trace: Returns the trace in the scope of the flags.
        show: Shows an answer in a format; None if the user did not request a format.
    """

    get_trace: Callable[[Flags], Session]
    show: Callable[[Answer, str | None, Flags], None]


_host: ContextVar[Host | None] = ContextVar("host", default=None)


@contextmanager
def use_host(host: Host | None) -> Iterator[None]:
    """Let commands in the block use the host's trace and show their answers there."""
    token = _host.set(host)
    try:
        yield
    finally:
        _host.reset(token)


def refuse_host(problem: str, hint: str) -> None:
    """Refuse what needs the file of a trace while a host has it open.

    Raises:
        UsageError: A host runs the command.
    """
    if _host.get():
        raise UsageError(problem, hint)


def make_pack_command(pack: Pack) -> Callable[..., None]:
    """Make the command of a pack."""

    def run(traces: list[Path] | None, flags: Flags, **params: Any) -> None:
        answer_pack(pack, traces, flags, params)

    rank_params = [] if is_cross_rank(pack) else [rank_sums.PARAM]
    pack_flags = map(make_param_flag, [*pack.params.values(), *step_params_of(pack.sql).values(), *rank_params])
    return make_command(run, format_pack_help(pack), *pack_flags, argument=make_traces_argument(), has_rows=True)


def answer_pack(pack: Pack, traces: Sequence[Path] | None, flags: Flags, params: dict[str, Any]) -> None:
    """Answer a pack and show the answer; with --explain, print the query instead.

    Raises:
        InsightError: A step failed.
    """
    if flags.explain:
        statement, values = pack.statement({name: params[name] for name in pack.params})
        explain(statement, f"{pack.name}: {pack.title}", values)
        return
    fmt = flags.format
    with open_traces(traces or [], flags, can_expand_folders=is_cross_rank(pack)) as trace:
        show(trace.answer(pack, steps=flags.steps, **params), fmt, flags)


def format_pack_help(pack: Pack) -> str:
    """Format the help of a pack's command from the pack's header: what comes before the options."""
    return f"{pack.title}.\n\n{pack.description}\n\nReading: {pack.reading}"


def open_traces(traces: Sequence[Path], flags: Flags, *, can_expand_folders: bool = False) -> Session:
    """Open the traces that the user selected, in the scope of the flags. A single trace is remembered for this folder.

    With `can_expand_folders`, a folder stands for all traces in it. Otherwise it must hold a single trace, except the
    output folder of a fleet, which always stands for all.
    """
    from nsys_insight.cli.trace_argument import is_pattern, remember_trace, resolve_trace_paths

    if host := _host.get():
        if traces or any(getattr(flags, name) is not None for name in LOADING_FLAGS):
            raise UsageError("the trace is open already", "omit its name, and the options for opening it")
        return cast("Session", nullcontext(host.get_trace(flags)))
    outputs.uses_cache.set(flags.cache is not False)
    fleets = {trace: failures for trace in traces if (failures := read_failures(trace)) is not None}
    if len(traces) > 1 or (traces and (can_expand_folders or fleets or is_pattern(traces[0]))):
        paths = resolve_trace_paths(traces)
    else:
        paths = [resolve_trace(traces[0] if traces else None)]
    options: dict[str, Any] = {
        "memory": flags.memory, "threads": flags.threads, "timeout_s": flags.timeout_s, "use_cache": flags.cache,
        "ncu": flags.ncu,
    }  # fmt: skip
    flags = _resolve_time_shares(paths, flags, options)
    scope = flags.scope
    outputs.check_target(flags.output, [*paths, *([flags.ncu] if flags.ncu else [])])
    opened_trace = open_trace(*paths, scope=scope, steps=flags.steps, **options)
    outputs.check_target(flags.output, [opened_trace.ncu] if opened_trace.ncu else [])
    if flags.cache is not False and (refusal := cache_folder.refusal_reason()):
        terminal.note(f"{describe_unused_cache(refusal)}; name one of your own in ${cache_folder.FOLDER_VARIABLE}")
    if len(paths) == 1 and flags.cache is not False:
        remember_trace(paths[0])
    for folder, failures in fleets.items():
        if failures:
            names = ", ".join(list(failures)[:_MAX_NAMED_FILES]) + (" …" if len(failures) > _MAX_NAMED_FILES else "")
            subject = "1 trace is" if len(failures) == 1 else f"{len(failures):,} traces are"
            terminal.note(f"{subject} not in {folder}: fleet could not read {names}")
    return opened_trace


def _resolve_time_shares(paths: Sequence[Path], flags: Flags, options: dict[str, Any]) -> Flags:
    """Return the flags with times instead of shares of the trace's wall time: `--from 10%`."""
    shares = {name: text for name in ("scope_from", "scope_to") if (text := getattr(flags, name) or "").endswith("%")}
    for text in shares.values():
        if not re.fullmatch(r"\d+(\.\d*)?%", text) or float(text[:-1]) > 100:
            raise UsageError(f"{text} is not a share of the trace", "write a number from 0 to 100: --from 10% --to 90%")
    if not shares:
        return flags
    with open_trace(*paths, **options) as trace:
        ((start_ns, end_ns),) = trace.rows("SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM wall")
    start_ns, wall_ns = start_ns or 0, (end_ns or 0) - (start_ns or 0)
    times = {name: str(round(start_ns + wall_ns * float(text[:-1]) / 100)) for name, text in shares.items()}
    return replace(
        flags, scope_from=times.get("scope_from", flags.scope_from), scope_to=times.get("scope_to", flags.scope_to)
    )


def describe_unused_cache(reason: str) -> str:
    """Say why the cache folder is not used (`cache_folder.refusal_reason`)."""
    return f"the cache folder {cache_folder.location()} is not used: {reason}"


def open_trace(*paths: Path, **options: Any) -> Session:
    """Open traces with the options of `session.Session`. Notes and the progress of an export go to the terminal."""
    from nsys_insight.session.session import Session

    with progress.show_task(f"opening {paths[0].name}") as task:
        return Session(paths, note=terminal.note, progress=make_export_progress(task, paths[0].name), **options)


def make_export_progress(task: progress.Task, name: str) -> Callable[[int], None]:
    """Make the callback that shows the percentage while nsys exports a report."""

    def update_task(percent: int) -> None:
        task.text, task.percent = f"exporting {name}", percent

    return update_task


def resolve_trace(argument: Path | None) -> Path:
    """Return the trace of an optional argument. If the argument is missing, a note names the trace."""
    from nsys_insight.cli.trace_argument import resolve_trace_path

    path, note = resolve_trace_path(argument)
    if note:
        terminal.note(note)
    return path


def show(
    answer: Answer | RunningAnswer, fmt: str, flags: Flags = DEFAULT_FLAGS, *, default_limit: int = DEFAULT_LIMIT
) -> None:
    """Write an answer to stdout or a file, and its notes to stderr.

    A table is cut to `default_limit` rows if it has more than 1.5 times as many; 0 never cuts.
    """
    limit, output = flags.limit, flags.output
    if flags.name_pattern is not None:
        answer = cast("Answer", answer).select_names(flags.name_pattern)
    if flags.sort is not None:
        answer = cast("Answer", answer).sort(flags.sort)
    if flags.columns is not None:
        answer = cast("Answer", answer).select_columns([name.strip() for name in flags.columns.split(",")])
    if (host := _host.get()) and not output:
        with use_host(None):
            host.show(cast("Answer", answer), flags.fmt, flags)
        return
    is_cut = fmt in HUMAN_FORMATS and not output and answer.row_count > 1.5 * default_limit
    if limit is None and default_limit and is_cut:
        limit = default_limit
    with progress.show_task(f"writing {output.name}") if output else progress_line.pause():
        # A running answer has the attributes that streaming formats use.
        write_answer(cast("Answer", answer), output or sys.stdout, fmt, limit or None, flags)
        sys.stdout.flush()
    if fmt == "json":  # contains the notes
        return
    for text in answer.notes:
        terminal.note(text)
    if limit and limit < answer.row_count and fmt not in HUMAN_FORMATS:  # those have a footer
        terminal.note(f"{limit} of {answer.row_count:,} rows shown; --limit 0 shows all")


def write_answer(answer: Answer, target: TextIO | Path, fmt: str, limit: int | None, flags: Flags) -> None:
    """Write an answer as the flags say: without colors and at any width unless it goes to the terminal."""
    write(
        answer, target, fmt,
        limit=limit,
        width=None if flags.output else terminal.get_width(),
        color=terminal.can_color(is_allowed=not flags.no_color and not flags.output),
        full_names=flags.full_names,
        wide=flags.wide,
        csv_safe=flags.csv_safe,
    )  # fmt: skip


def get_picture_suffix(output: Path | None) -> str | None:
    """Return the suffix of the output file if it is a picture."""
    from nsys_insight.render import roofline

    suffix = output.suffix.lower() if output else ""
    return suffix if suffix in roofline.PICTURES else None


def draw(answer: Answer, output: Path | None, limit: int | None) -> None:
    """Draw an answer, and print its notes.

    Raises:
        UsageError: There is nothing to draw, or the file cannot be written.
    """
    from nsys_insight.render import roofline

    drawing = roofline.draw(answer, get_picture_suffix(output), limit=limit, width=terminal.get_width())
    write_text(drawing if output else str(drawing) + "\n", output, answer.notes)


def write_text(text: str | bytes, output: Path | None, notes: Iterable[str] = ()) -> None:
    """Write a text to stdout or a file, and its notes to stderr.

    Raises:
        UsageError: The file cannot be written.
    """
    if output:
        outputs.write_output(output, text)
    else:
        sys.stdout.write(str(text))
    for note in notes:
        terminal.note(note)


def explain(statement: str, title: str, values: dict[str, Any]) -> None:
    """Print the SQL that would run, its parameters, and the views it reads."""
    tables = list_tables_read(statement)
    base_views = [view.name for view in views_read(parse_names(statement)) if view.name not in tables]
    lines = [
        title,
        *(f"${name} = {literal(value)}" for name, value in values.items()),
        f"reads {', '.join(tables)}",
        *([f"which are made of {', '.join(base_views)}"] if base_views else []),
    ]
    print("/* " + "\n   ".join(lines) + " */")
    print(statement)
