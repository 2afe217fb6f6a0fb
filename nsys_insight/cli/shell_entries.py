"""What is typed at the prompt of the shell, entry by entry: SQL, or a command that begins with a dot."""

from __future__ import annotations

import inspect
import io
import os
import shlex
import sys
import time
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from nsys_insight.cli import terminal
from nsys_insight.cli.flags import Flags, checked_format, scope_command
from nsys_insight.cli.registry import click_command, replace_old_flags, report_command
from nsys_insight.cli.run import Host, explain, hosted, show
from nsys_insight.errors import InsightError, UsageError
from nsys_insight.ingest.scope import words
from nsys_insight.packs import library
from nsys_insight.paths import expanded
from nsys_insight.render import HUMAN_FORMATS, format_for, write
from nsys_insight.session.schema import described
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.statements import split
from nsys_insight.text.cells import wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.session.answer import Answer
    from nsys_insight.trace import Trace

# Rows of a table that are shown in a terminal, page by page; .save writes them all.
MOST_ROWS = 1_000


_LEAVING = ("exit", "quit", ".quit")


class Shell:
    """Executes what is typed, entry by entry; a method ``do_x`` is the command ``.x``, its docstring the help."""

    def __init__(self, trace: Trace, *, full_names: bool = False, no_color: bool = False) -> None:
        """Ask about this trace until `.scope` narrows it; the caller closes what `trace` is then."""
        self.trace, self.whole = trace, trace
        self.full_names, self.no_color = full_names, no_color
        self.format = "table"
        self.last: Answer | None = None
        self.of_entry: Trace | None = None
        self._started = time.perf_counter()

    def execute(self, entry: str) -> None:
        """Execute one entry: a command that begins with a dot, or SQL.

        Raises:
            InsightError: It failed.
        """
        entry = entry.strip()
        if entry.rstrip(";") in _LEAVING:
            entry = ".exit"
        if entry.startswith("."):
            name, _, rest = entry[1:].partition(" ")
            method = commands().get(name)
            if method is None:
                raise UsageError(f"there is no command .{name}", ".help lists them; SQL needs no dot")
            method(self, rest.strip().rstrip(";").strip())
            return
        for statement in split(entry):
            if statement.creates:
                self.trace.define(statement)
                terminal.note(f"{statement.creates} is defined")
            else:
                self._show(partial(self.trace.execute, statement))

    def do_tables(self, _: str) -> None:
        """List the views, which are what SQL asks."""
        self._show(described)

    def do_schema(self, view: str) -> None:
        """VIEW: describe the columns of a view."""
        self._show(lambda: described(view or None))

    def do_packs(self, _: str) -> None:
        """List the reports."""
        for pack in library.known().values():
            _listed(pack.name, pack.title)

    def do_run(self, rest: str) -> None:
        """REPORT [FLAGS]: answer a report with the flags of its command: .run top --steady; .run top --help."""
        name, *typed = replace_old_flags(_words(rest)) or [""]
        command = report_command(library.pack_of(name))
        self._started = time.perf_counter()
        with hosted(Host(self._narrowed, self._show_asked)):
            _typed(command, f".run {name}", typed)

    def do_explain(self, rest: str) -> None:
        """PACK or SQL: print the SQL and the views it is click_command of."""
        if rest.replace("_", "-") in library.known():
            pack = library.pack_of(rest)
            values = {name: param.default for name, param in pack.params.items()}
            explain(bind(pack.sql, values), f"{pack.name}: {pack.title}", values)
        else:
            for statement in split(rest):
                explain(statement.sql, "sql", {})

    def do_format(self, name: str) -> None:
        """FORMAT: show answers as table, markdown, csv, json or jsonl."""
        if checked_format(name) == "parquet":
            raise UsageError("Parquet is binary and cannot be shown in a terminal", "write it: .save answer.parquet")
        self.format = name

    def do_save(self, rest: str) -> None:
        """FILE: write all rows of the last answer, in the format of the file's suffix."""
        if self.last is None:
            raise UsageError("there is no answer to save yet", "run a query first")
        path = expanded(rest)
        write(self.last, path, format_for(path))
        terminal.note(f"{self.last.row_count:,} rows written to {path}")

    def do_scope(self, rest: str) -> None:
        """none, or --steady, --step N, --nvtx RANGE, --from TIME, --device N and so on: select a part."""
        if rest == "none":
            self._become(self.whole)
        elif rest:
            _typed(scope_flags(self._look_at), ".scope", _words(rest))
        print(" ".join(words(self.trace.about()["scope"])) or "the whole trace")

    def _look_at(self, flags: Flags) -> None:
        given: dict[str, Any] = flags.scope.given
        self._become(self.whole.scope(**given))

    def _narrowed(self, flags: Flags) -> Trace:
        """The trace in the scope of an entry's flags, for its answer and those who save it."""
        if self.of_entry is not None:
            self.of_entry.close()
            self.of_entry, self.last = None, None
        given: dict[str, Any] = flags.scope.given
        if not given:
            return self.trace
        self.of_entry = self.trace.scope(steps=flags.steps, **given)
        return self.of_entry

    def do_help(self, _: str) -> None:
        """List the commands."""
        _listed("SELECT …;", "Any SQL; CREATE TEMP TABLE, VIEW and MACRO stay for the session.")
        for name, method in commands().items():
            arguments, colon, text = (method.__doc__ or "").partition(": ")
            text, arguments = (text, arguments) if colon else (arguments, "")
            _listed(f".{name}", f"{text[:1].upper()}{text[1:]}")
            if arguments:
                _listed("", f".{name} {arguments}")

    def do_exit(self, _: str) -> None:
        """Leave; exit, quit and Ctrl-D do too."""
        raise EOFError

    def _become(self, trace: Trace) -> None:
        if self.trace not in (self.whole, trace):
            self.trace.close()
        self.trace, self.last = trace, None

    def _show(self, ask: Callable[[], Answer]) -> None:
        self._started = time.perf_counter()
        self._show_asked(ask(), None, Flags())

    def _show_asked(self, answer: Answer, fmt: str | None, flags: Flags) -> None:
        seconds = time.perf_counter() - self._started
        if self.last is not None and self.last.table != answer.table:
            self.last.connection.execute(f"DROP TABLE IF EXISTS {self.last.table}")
        self.last = answer
        fmt = fmt or self.format
        full_names = self.full_names or flags.full_names
        most = MOST_ROWS if fmt in HUMAN_FORMATS and answer.row_count > MOST_ROWS else None
        limit = most if flags.limit is None else flags.limit or None
        flags = replace(flags, full_names=full_names, limit=limit or 0)
        if not sys.stdout.isatty() or fmt == "parquet":
            show(answer, fmt, replace(flags, no_color=True, columns=None))
            return
        text = io.StringIO()
        color = terminal.color(wanted=not (self.no_color or flags.no_color))
        width = None if full_names else terminal.width()
        write(
            answer, text, fmt,
            limit=limit, width=width, color=color, full_names=full_names, wide=flags.wide, csv_safe=flags.csv_safe,
        )  # fmt: skip
        _page(text.getvalue())
        for note in answer.notes:
            terminal.note(note)
        if limit and limit < answer.row_count:
            terminal.note(f"{limit:,} of {answer.row_count:,} rows shown; .save FILE writes all")
        print(f"{seconds:.2f} s", file=sys.stderr)


def commands() -> dict[str, Callable[[Shell, str], None]]:
    """The commands that begin with a dot, by name."""
    members = inspect.getmembers(Shell, inspect.isfunction)
    return {name.removeprefix("do_"): method for name, method in members if name.startswith("do_")}


def is_complete(text: str) -> bool:
    """Tell whether what is typed can be executed: a command, SQL up to its semicolon, or an empty last line."""
    return (
        not text.strip()
        or text.lstrip().startswith(".")
        or text.strip() in _LEAVING
        or text.rstrip().endswith(";")
        or text.endswith("\n")
    )


def _listed(name: str, text: str) -> None:
    width = (terminal.width() or 10_000) - 18
    for first, line in zip_longest([name], wrap(text, max(width, 20)), fillvalue=""):
        print(f"{first:18}{line}")


def _page(text: str) -> None:
    import shutil

    if text.count("\n") < shutil.get_terminal_size().lines:
        print(text, end="")
        return
    from rich.pager import SystemPager

    os.environ.setdefault("LESS", "-R")  # less shows colours only when told to
    SystemPager().show(text)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r} cannot be parsed: {error}".lower(), "close the quotation mark") from None


def scope_flags(look_at: Callable[[Flags], None]) -> Any:
    """The command behind ``.scope``: its flags are those of a report's scope."""
    return click_command("scope", scope_command(look_at, "Select a part of the trace; none selects all of it."), {})


def _typed(command: Any, name: str, words: list[str]) -> None:
    """Run a command as the command line does.

    Raises:
        UsageError: What was typed makes no sense to it.
    """
    try:
        command.main(words, prog_name=name, standalone_mode=False)
    except InsightError:
        raise
    except Exception as error:
        if not hasattr(error, "format_message"):  # Click's own complaints; their class is not public
            raise
        raise UsageError(error.format_message(), f"{name} --help") from None
