"""The prompt of the shell: history, multi-line input, and completion that shows the meaning of views and columns."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from nsys_insight import cache_folder
from nsys_insight.cli.flags import LOADING_FLAGS
from nsys_insight.cli.registry import make_report_command
from nsys_insight.cli.shell_entries import Shell, is_complete, list_dot_commands, make_dot_scope_command
from nsys_insight.model import views
from nsys_insight.packs import library
from nsys_insight.render import FORMATS
from nsys_insight.session.model import empty_model
from nsys_insight.session.schema import describe_schema
from nsys_insight.sql.names import find_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

_KEYWORDS = """SELECT FROM WHERE GROUP BY ALL ORDER LIMIT HAVING JOIN LEFT ASOF USING ON AS AND OR NOT NULL IS IN LIKE
BETWEEN DISTINCT COUNT(*) WITH UNION CASE WHEN THEN ELSE END OVER PARTITION FILTER QUALIFY DESC CREATE TEMP TABLE VIEW
MACRO""".split()  # noqa: SIM905 - a list of this length is hard to read
# The cursor is where a view is expected.
_VIEW_NEXT = re.compile(r"\b(FROM|JOIN)\s+\w*$", re.IGNORECASE)
# The cursor is after an alias or a view and a dot: after FROM kernels AS k, k. is followed by a column of kernels.
_QUALIFIED = re.compile(r"(\w+)\.\w*$")
_NAMES_QUERY = """
    SELECT DISTINCT s.name FROM strings AS s SEMI JOIN kernel_events AS k ON k.short_name_id = s.name_id
    UNION SELECT DISTINCT name FROM nvtx_ranges ORDER BY ALL LIMIT 5000"""


def make_prompt_session(shell: Shell, *, is_history_saved: bool = True) -> PromptSession[str]:
    """Make the prompt of a shell. The history is saved to a file only with `is_history_saved`.

    Enter runs a complete entry, and begins another line of an incomplete one.
    """
    session: PromptSession[str] = PromptSession(
        "nsys> ",
        reserve_space_for_menu=6,
        completer=Suggestions(shell),
        complete_in_thread=True,
        complete_while_typing=False,
        history=_open_history() if is_history_saved else InMemoryHistory(),
        multiline=Condition(lambda: not is_complete(session.default_buffer.text)),
        prompt_continuation="  ...> ",
        enable_history_search=True,
        mouse_support=False,
    )
    return session


class Suggestions(Completer):
    """Completions: commands after a dot, names of kernels and ranges in quotes, otherwise words of SQL."""

    def __init__(self, shell: Shell) -> None:
        """Suggest names of the shell's trace. The scope at the first completion applies to all later ones."""
        self.shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        """List completions that begin with the word before the cursor; in quotes, names that contain it."""
        text_before_cursor = document.text_before_cursor
        if document.text.lstrip().startswith("."):
            yield from self._complete_command(text_before_cursor.lstrip())
        elif text_before_cursor.count("'") % 2:
            prefix = text_before_cursor.rpartition("'")[2]
            matches = (name for name in self._names if prefix.lower() in name.lower())
            yield from (Completion(name.replace("'", "''"), -len(prefix)) for name in matches)
        else:
            prefix = (re.search(r"\w*$", text_before_cursor) or [""])[0]
            for word, meaning in self._complete_words(document.text, text_before_cursor):
                if word.lower().startswith(prefix.lower()):
                    yield Completion(word, -len(prefix), display_meta=meaning)

    def _complete_command(self, text_before_cursor: str) -> Iterator[Completion]:
        name, space, argument_text = text_before_cursor.partition(" ")
        candidates: dict[str, Any] = dict.fromkeys(f".{command}" for command in list_dot_commands())
        prefix = text_before_cursor
        if space:
            prefix = argument_text.rpartition(" ")[2]
            pack = library.all_packs().get(argument_text.partition(" ")[0])
            report_titles = {report.name: report.title for report in library.all_packs().values()}
            arguments: dict[str, dict[str, Any]] = {
                ".run": _list_flags(make_report_command(pack)) if pack and " " in argument_text else report_titles,
                ".explain": report_titles,
                ".schema": self._views,
                ".format": dict.fromkeys(FORMATS),
                ".scope": {**_list_flags(make_dot_scope_command(lambda _: None)), "none": "The whole trace"},
            }
            candidates = arguments.get(name, {})
        for word, meaning in candidates.items():
            if word.startswith(prefix):
                yield Completion(word, -len(prefix), display_meta=meaning or "")

    def _complete_words(self, text: str, text_before_cursor: str) -> Iterator[tuple[str, str]]:
        if _VIEW_NEXT.search(text_before_cursor):
            yield from self._views.items()
            return
        if qualified := _QUALIFIED.search(text_before_cursor):
            yield from self._columns.get(_resolve_view(qualified[1], text), {}).items()
            return
        # SELECT comes before FROM: until the query names a view, columns of all views are offered.
        query_words = find_words(text)
        mentioned_views = [view for view in self._columns if view in query_words] or list(self._columns)
        columns: dict[str, str] = {}
        for view in mentioned_views:
            columns = self._columns[view] | columns
        yield from columns.items()
        yield from self._views.items()
        yield from ((word, "") for word in _KEYWORDS)
        yield from ((f"{name}(", "") for name in self._functions)

    @cached_property
    def _columns(self) -> dict[str, dict[str, str]]:
        columns: dict[str, dict[str, str]] = {view: {} for view in views.documented_views(internal=False)}
        with empty_model() as connection:
            for view, column, text in connection.execute(
                "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE schema_name = 'main' ORDER BY ALL"
            ).fetchall():
                columns.get(view, {})[column] = text or ""
        return columns

    @cached_property
    def _views(self) -> dict[str, str]:
        return dict(describe_schema().rows())

    @cached_property
    def _functions(self) -> list[str]:
        with empty_model() as connection:
            rows = connection.execute(
                """SELECT DISTINCT function_name FROM duckdb_functions()
                   WHERE function_type IN ('scalar', 'aggregate', 'macro')
                       AND function_name SIMILAR TO '[a-z][a-z0-9_]+'
                   ORDER BY ALL"""
            ).fetchall()
        return [name for (name,) in rows]

    @cached_property
    def _names(self) -> list[str]:
        return [name for (name,) in self.shell.trace.query(_NAMES_QUERY).rows() if name]


def _list_flags(command: Any) -> dict[str, str]:
    """List the flags of a command with their help, except those that control how a trace is opened."""
    return {
        name: str(param.help or "").replace("\\[", "[")
        for param in command.params
        for name in (*param.opts, *param.secondary_opts)
        if name.startswith("--") and param.name not in LOADING_FLAGS
    }


def _resolve_view(name: str, text: str) -> str:
    """Return the view behind a name in a query: for FROM kernels AS k, k is kernels."""
    match = re.search(rf"\b(\w+)\s+(?:AS\s+)?{name}\b", text, re.IGNORECASE)
    return match[1].lower() if match and match[1].upper() not in _KEYWORDS else name.lower()


def _open_history() -> History:
    try:
        path = cache_folder.claim("shell-history")
        path.touch(mode=0o600)
        return FileHistory(str(path))
    except OSError:
        return InMemoryHistory()
