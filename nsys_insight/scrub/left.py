"""What a file still holds that looks like a secret: it is read as anybody would who was given it."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

from nsys_insight import progress
from nsys_insight.ingest.sqlite_file import uri
from nsys_insight.scrub.rewrite import in_address
from nsys_insight.session.answer import Column, of_rows
from nsys_insight.sql.quoting import identifier
from nsys_insight.text.secrets import formats_in, named_in, random_in

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from nsys_insight.scrub.known import Known
    from nsys_insight.session.answer import Answer

_COLUMNS = (
    Column("place", "VARCHAR", "The table and the column"),
    Column("looks_like", "VARCHAR", "What it looks like"),
    Column("text", "VARCHAR", "The text, up to 120 characters around it"),
    Column("cells", "BIGINT", "Cells with this text"),
)
_AROUND = 60
# Symbols with random parts that are in every program of their kind: C++'s, Cython's, those of CUDA's static runtime.
_SYMBOL = re.compile(r"_Z|__pyx_|libcudart_static_[0-9a-f]{40}\Z")
_EMPTY = "Nothing that looks like a secret is left."


def left(file: Path, known: Known) -> Answer:
    """List what is left in a SQLite file that looks like a secret, or is known to be private."""
    import sqlite3

    found: Counter[tuple[str, str, str]] = Counter()
    with closing(sqlite3.connect(uri(file), uri=True)) as database, progress.at("looking for secrets that are left"):
        database.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        for place, text, cells in _texts(database):
            for kind, start, end in _looks(text, known):
                shown = text[max(start - _AROUND // 2, 0) : min(end, start + _AROUND) + _AROUND // 2]
                found[place, kind, shown.encode("utf-8", "replace").decode()] += cells
    rows = [[*key, cells] for key, cells in sorted(found.items())]
    return of_rows(_COLUMNS, rows, report="scrub", title="What is left that looks like a secret", empty=_EMPTY)


def _texts(database: sqlite3.Connection) -> Iterator[tuple[str, str, int]]:
    """Give every text of a file, with where it is and how many cells have it; also the names of tables and columns."""
    for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"):
        yield "definitions of tables", sql, 1
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        for (column,) in database.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall():
            name = identifier(column)
            for cell, cells in database.execute(
                f"""SELECT {name}, count(*) FROM {identifier(table)}
                    WHERE typeof({name}) IN ('text', 'blob') GROUP BY {name}"""
            ):
                yield f"{table}.{column}", cell if isinstance(cell, str) else cell.decode("utf-8", "replace"), cells


def _looks(text: str, known: Known) -> Iterator[tuple[str, int, int]]:
    yield from formats_in(text)
    yield from named_in(text)
    if text not in known.kernels and not _SYMBOL.match(text):
        yield from random_in(text)
    yield from in_address(text)
    for word in (*known.users, *known.hosts, *known.values):
        # A shorter word may be a part of any other.
        if len(word) > 5 and (at := text.find(word)) >= 0:
            yield "environment, host or user", at, at + len(word)
