"""Notes of reports: sentences below an answer. Each is a template, filled with the rows of a query.

Notes that several reports have in common are in `queries/reports/notes.toml`. A report takes one with `use`, and may
have a text of its own for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.paths import queries_folder
from nsys_insight.records import RecordError, make_record, parse_toml
from nsys_insight.sql.headers import join_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


Clause = str | tuple[str, ...]


class Note(NamedTuple):
    """A note of a report.

    Attributes:
        texts: The clauses of its template (`text.templates`).
        items: The templates of columns that are lists of structs, each with its clauses.
        query: The query with the columns of the template. It can read `answer`. Each row is a sentence.
    """

    texts: tuple[Clause, ...]
    items: tuple[tuple[str, tuple[Clause, ...]], ...]
    query: str

    def fill(self, columns: Mapping[str, Any]) -> str:
        """Write the sentence for a row of the query; "" if the columns it needs are NULL.

        Raises:
            KeyError: The template names a column that the row does not have.
        """
        from nsys_insight.text.templates import fill_template

        return fill_template(self.texts, columns, dict(self.items))

    @property
    def columns(self) -> set[str]:
        """Return the columns that its text names, except those of items."""
        from nsys_insight.text.templates import list_columns

        return list_columns(self.texts)


@dataclass(frozen=True)
class NoteHeader:
    """A note in the table ``[notes]`` of a header; see CONTRIBUTING.md."""

    text: str | tuple[Clause, ...] = ()
    query: str = ""
    use: str = ""
    items: dict[str, str | tuple[Clause, ...]] = field(default_factory=dict)

    def make_note(self, name: str, shared: Mapping[str, Note], *, needs_query: bool = False) -> Note:
        """Make the note; `shared` are the notes that it may use. Other modules fill a shared note without a query.

        Raises:
            RecordError: It has no text or query, or there is no note that it could use.
        """
        if self.use and self.use not in shared:
            raise RecordError(f"notes.{name}.use cannot be {self.use!r}: choose one of {', '.join(shared)}")
        base = shared[self.use] if self.use else Note((), (), "")
        items = tuple((column, _join(texts)) for column, texts in self.items.items())
        note = Note(_join(self.text) or base.texts, items or base.items, self.query or base.query)
        if not note.texts or (needs_query and not note.query):
            raise RecordError(f"notes.{name} lacks {'query' if note.texts else 'text'!r}")
        return note


@dataclass(frozen=True)
class _File:
    notes: dict[str, NoteHeader]


@cache
def shared_notes() -> dict[str, Note]:
    """Return the notes that several reports have in common, by name."""
    text = (queries_folder() / "reports" / "notes.toml").read_text(encoding="utf-8")
    notes: dict[str, Note] = {}
    for name, header in make_record(_File, {"notes": parse_toml(text)}).notes.items():
        notes[name] = header.make_note(name, notes)
    return notes


def fill_note(name: str, columns: Mapping[str, Any]) -> str:
    """Write the sentence of a shared note about these columns; "" if the columns it needs are NULL."""
    return shared_notes()[name].fill(columns)


def _join(texts: str | tuple[Clause, ...]) -> tuple[Clause, ...]:
    """Join the lines of each text into one."""
    clauses = (texts,) if isinstance(texts, str) else texts
    return tuple(join_lines(text) if isinstance(text, str) else tuple(map(join_lines, text)) for text in clauses)


def unite_queries(names: Iterable[str]) -> str:
    """Write a query with the rows of several shared notes; the column `note_` is the name of the note."""
    return " UNION ALL BY NAME ".join(
        f"SELECT '{name}' AS note_, * FROM (\n{shared_notes()[name].query}\n)" for name in names
    )
