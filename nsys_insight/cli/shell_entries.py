"""Execute entries of the shell: SQL, or a command that begins with a dot."""

from __future__ import annotations

import inspect
import io
import os
import shlex
import shutil
import sys
import time
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from nsys_insight.cli import terminal
from nsys_insight.cli.flags import Flags, check_format, make_scope_command
from nsys_insight.cli.registry import make_click_command, make_report_command
from nsys_insight.cli.run import Host, explain, show, use_host
from nsys_insight.errors import InsightError, UsageError
from nsys_insight.ingest.scope import write_flags
from nsys_insight.packs import library
from nsys_insight.packs.step_options import AUTO
from nsys_insight.paths import expand_home
from nsys_insight.render import BINARY_FORMATS, HUMAN_FORMATS, choose_format, write
from nsys_insight.session.answer import Answer, build_answer
from nsys_insight.session.schema import describe_schema
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.statements import split_statements
from nsys_insight.text.cells import wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.session.session import Session

# Maximum rows of a table that the terminal shows, page by page; .save writes all rows.
MAX_SHOWN_ROWS = 1_000


_EXIT_WORDS = ("exit", "quit", ".quit")


class Shell:
    """Executes entries one by one. A method ``do_x`` is the command ``.x``, and its docstring is the help."""

    def __init__(self, trace: Session, *, full_names: bool = False, no_color: bool = False) -> None:
        """Query this trace until `.scope` selects a part of it. The caller closes the current `trace`."""
        self.trace, self.unscoped_trace = trace, trace
        self.full_names, self.no_color = full_names, no_color
        self.format = "table"
        self.last_answer: Answer | None = None
        self.entry_trace: Session | None = None
        self._started_s = time.perf_counter()

    def execute(self, entry: str) -> None:
        """Execute one entry: a command that begins with a dot, or SQL.

        Raises:
            InsightError: The entry failed.
        """
        entry = entry.strip()
        if entry.rstrip(";") in _EXIT_WORDS:
            entry = ".exit"
        if _is_report(entry):
            entry = f".run {entry}"
        if entry.startswith("."):
            name, _, argument_text = entry[1:].partition(" ")
            commands = list_dot_commands()
            matches = [command for command in commands if command == name] or [
                command for command in commands if name and command.startswith(name)
            ]
            if len(matches) != 1:
                raise UsageError(f"there is no command .{name}", ".help lists them; SQL needs no dot")
            method = commands[matches[0]]
            method(self, argument_text.strip().rstrip(";").strip())
            return
        for statement in split_statements(entry):
            if statement.defined_name:
                self.trace.define(statement)
                terminal.note(f"{statement.defined_name} is defined")
            else:
                self._show(partial(self.trace.execute, statement))

    def do_tables(self, part: str) -> None:
        """[PART]: list the views; only those with PART in the name."""
        views = describe_schema()
        if part:
            rows = [row for row in views.rows() if part.lower() in row[0].lower()]
            views = build_answer(views.columns, rows, report="schema", title="Views", empty="No view has this name.")
        self._show(lambda: views)

    def do_schema(self, view: str) -> None:
        """VIEW: describe the columns of a view."""
        self._show(lambda: describe_schema(view or None))

    def do_packs(self, _: str) -> None:
        """List the reports."""
        for pack in library.all_packs().values():
            _print_entry(pack.name, pack.title)

    def do_run(self, argument_text: str) -> None:
        """REPORT [FLAGS]: run a report, for example .run top --steady."""
        name, *flag_words = _split_words(argument_text) or [""]
        if not name:
            raise UsageError(".run needs the name of a report", ".packs lists them")
        if name == "diagnose":
            from nsys_insight.diagnose.diagnosis import diagnose

            print(diagnose(self.trace, AUTO).text(terminal.get_width()), end="")
            return
        command = make_report_command(library.get_pack(name))
        self._started_s = time.perf_counter()
        with use_host(Host(self._scope_for_entry, self._show_answer)):
            _run_click_command(command, f".run {name}", flag_words)

    def do_explain(self, argument_text: str) -> None:
        """PACK or SQL: print the SQL and the views it reads."""
        if argument_text.replace("_", "-") in library.all_packs():
            pack = library.get_pack(argument_text)
            values = {name: param.default for name, param in pack.params.items()}
            explain(bind(pack.sql, values), f"{pack.name}: {pack.title}", values)
        else:
            for statement in split_statements(argument_text):
                explain(statement.sql, "sql", {})

    def do_format(self, name: str) -> None:
        """FORMAT: show answers as table, markdown, csv, json or jsonl."""
        if check_format(name) in BINARY_FORMATS:
            raise UsageError(
                f"{name.capitalize()} is binary and cannot be shown in a terminal", f"write it: .save answer.{name}"
            )
        self.format = name

    def do_save(self, file_name: str) -> None:
        """FILE: write all rows of the last answer, in the format of the file's suffix."""
        if self.last_answer is None:
            raise UsageError("there is no answer to save yet", "run a query first")
        path = expand_home(file_name)
        write(self.last_answer, path, choose_format(path))
        terminal.note(f"{self.last_answer.row_count:,} rows written to {path}")

    def do_scope(self, argument_text: str) -> None:
        """none, or --steady, --step N, --nvtx RANGE, --from TIME, --device N and so on: select a part."""
        if argument_text == "none":
            self._use_trace(self.unscoped_trace)
        elif argument_text:
            _run_click_command(make_dot_scope_command(self._apply_scope), ".scope", _split_words(argument_text))
        print(shlex.join(write_flags(self.trace.describe_trace()["scope"])) or "the whole trace")

    def _apply_scope(self, flags: Flags) -> None:
        filters: dict[str, Any] = flags.scope.filters
        self._use_trace(self.unscoped_trace.scope(**filters))

    def _scope_for_entry(self, flags: Flags) -> Session:
        """Return the trace in the scope of an entry's flags. It stays open until the next entry, for `.save`."""
        if self.entry_trace is not None:
            self.entry_trace.close()
            self.entry_trace, self.last_answer = None, None
        filters: dict[str, Any] = flags.scope.filters
        if not filters:
            return self.trace
        self.entry_trace = self.trace.scope(steps=flags.steps, **filters)
        return self.entry_trace

    def do_help(self, _: str) -> None:
        """List the commands."""
        _print_entry("SELECT …;", "Any SQL; CREATE TEMP TABLE, VIEW and MACRO stay for the session.")
        for name, method in list_dot_commands().items():
            arguments, colon, text = (method.__doc__ or "").partition(": ")
            text, arguments = (text, arguments) if colon else (arguments, "")
            _print_entry(f".{name}", f"{text[:1].upper()}{text[1:]}")
            if arguments:
                _print_entry("", f".{name} {arguments}")

    def do_exit(self, _: str) -> None:
        """Leave; exit, quit and Ctrl-D do too."""
        raise EOFError

    def _use_trace(self, trace: Session) -> None:
        if self.trace not in (self.unscoped_trace, trace):
            self.trace.close()
        self.trace, self.last_answer = trace, None

    def _show(self, get_answer: Callable[[], Answer]) -> None:
        self._started_s = time.perf_counter()
        self._show_answer(get_answer(), None, Flags())

    def _show_answer(self, answer: Answer, fmt: str | None, flags: Flags) -> None:
        seconds = time.perf_counter() - self._started_s
        if self.last_answer is not None and self.last_answer.table != answer.table:
            self.last_answer.connection.execute(f"DROP TABLE IF EXISTS {self.last_answer.table}")
        self.last_answer = answer
        fmt = fmt or self.format
        full_names = self.full_names or flags.full_names
        max_rows = MAX_SHOWN_ROWS if fmt in HUMAN_FORMATS and answer.row_count > MAX_SHOWN_ROWS else None
        limit = max_rows if flags.limit is None else flags.limit or None
        flags = replace(flags, full_names=full_names, limit=limit or 0)
        if not sys.stdout.isatty() or fmt in BINARY_FORMATS:
            show(answer, fmt, replace(flags, no_color=True, columns=None))
            return
        text = io.StringIO()
        color = terminal.can_color(is_allowed=not (self.no_color or flags.no_color))
        width = None if full_names else terminal.get_width()
        write(
            answer, text, fmt,
            limit=limit, width=width, color=color, full_names=full_names, wide=flags.wide, csv_safe=flags.csv_safe,
        )  # fmt: skip
        _print_paged(text.getvalue())
        for note in answer.notes:
            terminal.note(note)
        if limit and limit < answer.row_count:
            terminal.note(f"{limit:,} of {answer.row_count:,} rows shown; .save FILE writes all")
        print(f"{seconds:.2f} s", file=sys.stderr)


def list_dot_commands() -> dict[str, Callable[[Shell, str], None]]:
    """List the commands that begin with a dot, by name."""
    members = inspect.getmembers(Shell, inspect.isfunction)
    return {name.removeprefix("do_"): method for name, method in members if name.startswith("do_")}


def is_complete(text: str) -> bool:
    """Return whether an entry can be executed: a command, SQL that ends with a semicolon, or an empty last line."""
    return (
        not text.strip()
        or text.strip() in _EXIT_WORDS
        or is_command(text)
        or text.rstrip().endswith(";")
        or text.endswith("\n")
    )


def is_command(text: str) -> bool:
    """Return whether an entry is a command, which is a single line: .help, or a report as on the command line."""
    return text.lstrip().startswith(".") or _is_report(text)


def _is_report(text: str) -> bool:
    """Return whether an entry begins with the name of a report. No SQL statement does."""
    word = text.split(maxsplit=1)[0].rstrip(";") if text.strip() else ""
    return word == "diagnose" or word in library.all_packs()


def _print_entry(label: str, text: str) -> None:
    width = (terminal.get_width() or 10_000) - 18
    for line_label, line in zip_longest([label], wrap(text, max(width, 20)), fillvalue=""):
        print(f"{line_label:18}{line}")


def _print_paged(text: str) -> None:
    if text.count("\n") < shutil.get_terminal_size().lines:
        print(text, end="")
        return
    from rich.pager import SystemPager

    os.environ.setdefault("LESS", "-R")  # less shows colors only with -R
    SystemPager().show(text)


def _split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r} cannot be parsed: {error}".lower(), "close the quotation mark") from None


def make_dot_scope_command(apply_scope: Callable[[Flags], None]) -> Any:
    """Make the command behind ``.scope``: its flags are the scope flags of a report."""
    return make_click_command(
        "scope", make_scope_command(apply_scope, "Select a part of the trace; none selects all of it."), {}
    )


def _run_click_command(command: Any, name: str, words: list[str]) -> None:
    """Run a command as the command line does."""
    try:
        command.main(words, prog_name=name, standalone_mode=False)
    except InsightError:
        raise
    except Exception as error:
        if not hasattr(error, "format_message"):  # Click's usage errors: their class is not public
            raise
        raise UsageError(error.format_message(), f"{name} --help") from None
