"""The prompt of the shell: history, several lines, and completion with what views and columns mean beside it."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from nsys_insight.cli.flags import LOADING
from nsys_insight.cli.registry import report_command
from nsys_insight.cli.shell_entries import Shell, commands, is_complete, scope_flags
from nsys_insight.ingest import cache_folder
from nsys_insight.model import views
from nsys_insight.packs import library
from nsys_insight.render import FORMATS
from nsys_insight.session.model import empty_model
from nsys_insight.session.schema import described
from nsys_insight.sql.names import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

_KEYWORDS = """SELECT FROM WHERE GROUP BY ALL ORDER LIMIT HAVING JOIN LEFT ASOF USING ON AS AND OR NOT NULL IS IN LIKE
BETWEEN DISTINCT COUNT(*) WITH UNION CASE WHEN THEN ELSE END OVER PARTITION FILTER QUALIFY DESC CREATE TEMP TABLE VIEW
MACRO""".split()  # noqa: SIM905 - a list of so many is no easier to read
# Where a view comes next, and a column of which: after FROM kernels AS k, k. is one of kernels.
_VIEW_NEXT = re.compile(r"\b(FROM|JOIN)\s+\w*$", re.IGNORECASE)
_QUALIFIED = re.compile(r"(\w+)\.\w*$")
_NAMES = """
    SELECT DISTINCT s.name FROM strings AS s SEMI JOIN kernel_events AS k ON k.short_name_id = s.name_id
    UNION SELECT DISTINCT name FROM nvtx_ranges ORDER BY ALL LIMIT 5000"""


def prompt_session(shell: Shell, *, lasting: bool = True) -> PromptSession[str]:
    """Make the prompt of a shell, with a history that lasts or not.

    Enter sends what is complete, and begins another line of what is not.
    """
    session: PromptSession[str] = PromptSession(
        "nsys> ",
        reserve_space_for_menu=6,
        completer=Suggestions(shell),
        complete_in_thread=True,
        complete_while_typing=False,
        history=_history() if lasting else InMemoryHistory(),
        multiline=Condition(lambda: not is_complete(session.default_buffer.text)),
        prompt_continuation="  ...> ",
        enable_history_search=True,
        mouse_support=False,
    )
    return session


class Suggestions(Completer):
    """What may come next: after a dot a command, in quotes a name of a kernel or range, else a word of SQL."""

    def __init__(self, shell: Shell) -> None:
        """Suggest names of the shell's trace, as it is scoped when they are first asked for."""
        self.shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        """Give what begins with the word before the cursor, or, in quotes, contains it."""
        before = document.text_before_cursor
        if document.text.lstrip().startswith("."):
            yield from self._of_command(before.lstrip())
        elif before.count("'") % 2:
            typed = before.rpartition("'")[2]
            matches = (name for name in self._names if typed.lower() in name.lower())
            yield from (Completion(name.replace("'", "''"), -len(typed)) for name in matches)
        else:
            typed = (re.search(r"\w*$", before) or [""])[0]
            for word, meaning in self._words(document.text, before):
                if word.lower().startswith(typed.lower()):
                    yield Completion(word, -len(typed), display_meta=meaning)

    def _of_command(self, before: str) -> Iterator[Completion]:
        name, space, rest = before.partition(" ")
        known: dict[str, Any] = dict.fromkeys(f".{command}" for command in commands())
        typed = before
        if space:
            typed = rest.rpartition(" ")[2]
            pack = library.known().get(rest.partition(" ")[0])
            arguments: dict[str, dict[str, Any]] = {
                ".run": _flags_of(report_command(pack))
                if pack and " " in rest
                else {each.name: each.title for each in library.known().values()},
                ".explain": {each.name: each.title for each in library.known().values()},
                ".schema": self._views,
                ".format": dict.fromkeys(FORMATS),
                ".scope": {**_flags_of(scope_flags(lambda _: None)), "none": "The whole trace"},
            }
            known = arguments.get(name, {})
        for word, meaning in known.items():
            if word.startswith(typed):
                yield Completion(word, -len(typed), display_meta=meaning or "")

    def _words(self, text: str, before: str) -> Iterator[tuple[str, str]]:
        if _VIEW_NEXT.search(before):
            yield from self._views.items()
            return
        if qualified := _QUALIFIED.search(before):
            yield from self._columns.get(_view_called(qualified[1], text), {}).items()
            return
        # SELECT comes before FROM: as long as no view is named, a column may be any view's.
        typed = words(text)
        named = [view for view in self._columns if view in typed] or list(self._columns)
        columns: dict[str, str] = {}
        for view in named:
            columns = self._columns[view] | columns
        yield from columns.items()
        yield from self._views.items()
        yield from ((word, "") for word in _KEYWORDS)
        yield from ((f"{name}(", "") for name in self._functions)

    @cached_property
    def _columns(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {view: {} for view in views.documented(internal=False)}
        with empty_model() as connection:
            for view, column, text in connection.execute(
                "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE schema_name = 'main' ORDER BY ALL"
            ).fetchall():
                found.get(view, {})[column] = text or ""
        return found

    @cached_property
    def _views(self) -> dict[str, str]:
        return dict(described().rows())

    @cached_property
    def _functions(self) -> list[str]:
        with empty_model() as connection:
            found = connection.execute(
                """SELECT DISTINCT function_name FROM duckdb_functions()
                   WHERE function_type IN ('scalar', 'aggregate', 'macro')
                       AND function_name SIMILAR TO '[a-z][a-z0-9_]+'
                   ORDER BY ALL"""
            ).fetchall()
        return [name for (name,) in found]

    @cached_property
    def _names(self) -> list[str]:
        return [name for (name,) in self.shell.trace.query(_NAMES).rows() if name]


def _flags_of(command: Any) -> dict[str, str]:
    """The flags of a command, with their help."""
    return {
        name: str(param.help or "").replace("\\[", "[")
        for param in command.params
        for name in (*param.opts, *param.secondary_opts)
        if name.startswith("--") and param.name not in LOADING
    }


def _view_called(name: str, text: str) -> str:
    """The view that a name stands for in a query: FROM kernels AS k."""
    found = re.search(rf"\b(\w+)\s+(?:AS\s+)?{name}\b", text, re.IGNORECASE)
    return found[1].lower() if found and found[1].upper() not in _KEYWORDS else name.lower()


def _history() -> History:
    try:
        path = cache_folder.folder() / "shell-history"
        path.touch(mode=0o600)
        return FileHistory(str(path))
    except OSError:
        return InMemoryHistory()
