"""What is typed at the prompt of the shell, entry by entry: SQL, or a command that begins with a dot."""

from __future__ import annotations

import inspect
import io
import os
import shlex
import sys
import time
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from nsys_insight.cli import terminal
from nsys_insight.cli.flags import Flags, checked_format
from nsys_insight.cli.run import explain, show
from nsys_insight.errors import UsageError
from nsys_insight.packs import library, step_options
from nsys_insight.paths import expanded
from nsys_insight.render import HUMAN_FORMATS, format_for, write
from nsys_insight.session.schema import described
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.statements import split
from nsys_insight.text.cells import wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
        """PACK [--FLAG VALUE]...: answer a report, such as .run top --group-by family."""
        name, *words = _words(rest) or [""]
        pack = library.pack_of(name)
        known = pack.params | step_options.params_of(pack.sql)
        flags = {param.flag: param.name for param in known.values()}
        params = _flags(words, flags, {param.flag for param in known.values() if param.kind is bool})
        self._show(lambda: self.trace.answer(pack, **params))

    def do_explain(self, rest: str) -> None:
        """PACK or SQL: print the SQL and the views it is made of."""
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
            raise UsageError("Parquet is binary and would garble the terminal", "write it: .save answer.parquet")
        self.format = name

    def do_save(self, rest: str) -> None:
        """FILE: write all rows of the last answer, in the format of the file's suffix."""
        if self.last is None:
            raise UsageError("there is no answer to save yet", "ask something first")
        path = expanded(rest)
        write(self.last, path, format_for(path))
        terminal.note(f"{self.last.row_count:,} rows written to {path}")

    def do_scope(self, rest: str) -> None:
        """none, or --nvtx RANGE --from TIME --to TIME --device N --process N --stream N: look at a part."""
        names = ("nvtx", "from", "to", "device", "process", "stream")
        if rest == "none":
            self._become(self.whole)
        elif rest:
            typed = _flags(_words(rest), {f"--{name}": name for name in names})
            given: dict[str, Any] = {
                f"scope_{name}": _number(value, name) if name in names[3:] else value for name, value in typed.items()
            }
            flags = Flags(**given)
            parts = {name: value for name, value in vars(flags.scope).items() if value is not None}
            self._become(self.whole.scope(**parts))
        scope = self.trace.about()["scope"]
        print(" ".join(f"{name} {value}" for name, value in scope.items()) or "the whole trace")

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
        started = time.perf_counter()
        answer = ask()
        seconds = time.perf_counter() - started
        if self.last is not None:
            self.last.connection.execute(f"DROP TABLE IF EXISTS {self.last.table}")
        self.last = answer
        limit = MOST_ROWS if self.format in HUMAN_FORMATS and answer.row_count > MOST_ROWS else None
        if not sys.stdout.isatty():
            show(answer, self.format, Flags(full_names=self.full_names, no_color=True, limit=limit))
            return
        text = io.StringIO()
        color = terminal.color(wanted=not self.no_color)
        width = None if self.full_names else terminal.width()
        write(answer, text, self.format, limit=limit, width=width, color=color, full_names=self.full_names)
        _page(text.getvalue())
        for note in answer.notes:
            terminal.note(note)
        if limit:
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
        raise UsageError(f"{text!r} cannot be taken apart: {error}".lower(), "close the quotation mark") from None


def _flags(words: list[str], names: dict[str, str], switches: Iterable[str] = ()) -> dict[str, Any]:
    """Read ``--flag value`` and ``--flag=value``; a switch has no value, and ``--no-`` before it turns it off."""
    found: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        bare = flag.replace("--no-", "--", 1) if flag not in names else flag
        if bare not in names:
            raise UsageError(f"there is no flag {flag}", f"there are {', '.join(names) or 'none'}")
        if bare in switches:
            found[names[bare]] = bare == flag
            continue
        if not equals:
            value = next(rest, "")
        if not value:
            raise UsageError(f"{flag} has no value", f"write {flag} VALUE")
        found[names[bare]] = value
    return found


def _number(value: str, name: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"--{name} is a number, not {value!r}", f".scope --{name} 0") from None
