"""Checks of a scrubbed file: its reports give the same numbers, and no text in it looks like a secret."""

from __future__ import annotations

import math
import re
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight import progress
from nsys_insight.errors import InsightError
from nsys_insight.ingest.sqlite_file import uri
from nsys_insight.packs.library import built_in
from nsys_insight.render.json_ import plain
from nsys_insight.scrub.rewrite import addresses_in
from nsys_insight.session.answer import Column, of_rows
from nsys_insight.sql.quoting import identifier
from nsys_insight.text.secrets import formats_in, named_in, random_in

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from nsys_insight.packs.pack import Pack
    from nsys_insight.scrub.sensitive import Sensitive
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session

_TIMES = ("start_ns", "end_ns", "timestamp_ns")
# Sums of floating point numbers differ by the order in which threads add them up.
_TOLERANCE = 1e-6
_COLUMNS = (
    Column("place", "VARCHAR", "The table and the column"),
    Column("looks_like", "VARCHAR", "What it looks like"),
    Column("text", "VARCHAR", "The text, up to 120 characters around it"),
    Column("cells", "BIGINT", "Cells with this text"),
)
_CONTEXT = 60
# Symbols with random parts that are in every program of their kind: C++'s, Cython's, those of CUDA's static runtime.
_SYMBOL = re.compile(r"_Z|__pyx_|libcudart_static_[0-9a-f]{40}\Z")
_NO_SECRETS = "Nothing that looks like a secret is left."


def differing_reports(before: Session, after: Session, shift_ns: int) -> list[str]:
    """Return the reports whose numbers differ between two traces. The times of the second one are `shift_ns` less.

    Texts may differ, but each column must have as many different texts in both.
    """
    before.load()
    after.load()
    found = []
    with progress.at("comparing the reports") as task:
        for number, (name, pack) in enumerate(built_in().items()):
            task.text, task.percent = f"comparing {name}", 100 * number / len(built_in())
            if not _same(_numbers(before, pack, shift_ns), _numbers(after, pack, 0)):
                found.append(name)
    return found


class _Numbers(NamedTuple):
    """What must agree: the numbers of each row, and how many different texts each column has; or the error."""

    rows: list[tuple[list[str], list[float]]]
    others: object


def _numbers(trace: Session, pack: Pack, shift_ns: int) -> _Numbers:
    try:
        answer = trace.answer(pack)
    except InsightError as error:
        return _Numbers([], type(error))
    rows = answer.rows()
    texts = [at for at, column in enumerate(answer.columns) if "VARCHAR" in column.type]
    text_counts = [len({row[at] for row in rows}) for at in texts], len(answer.notes)
    return _Numbers(sorted(_row(answer, row, shift_ns) for row in rows), text_counts)


def _row(answer: Answer, row: tuple[Any, ...], shift_ns: int) -> tuple[list[str], list[float]]:
    """Split a row into its exact cells, which identify it, and its floating point numbers."""
    exact, others = [], []
    for column, cell in zip(answer.columns, row, strict=True):
        value = plain(cell)
        if isinstance(value, float):
            others.append(value)
        elif "VARCHAR" not in column.type:
            is_time = isinstance(value, int) and column.name.endswith(_TIMES)
            exact.append(str(value - shift_ns if is_time else value))
    return exact, others


def _same(one: _Numbers, other: _Numbers) -> bool:
    return (
        one.others == other.others
        and [exact for exact, _ in one.rows] == [exact for exact, _ in other.rows]
        and all(
            len(left) == len(right)
            and all(
                math.isclose(*pair, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) for pair in zip(left, right, strict=True)
            )
            for (_, left), (_, right) in zip(one.rows, other.rows, strict=True)
        )
    )


def secrets_left(file: Path, sensitive: Sensitive) -> Answer:
    """List the texts of a SQLite file that look like a secret, or that are known to be private."""
    import sqlite3

    found: Counter[tuple[str, str, str]] = Counter()
    with closing(sqlite3.connect(uri(file), uri=True)) as database, progress.at("looking for secrets that are left"):
        database.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        for place, text, cells in _texts(database):
            for kind, start, end in _secrets_in(text, sensitive):
                shown = text[max(start - _CONTEXT // 2, 0) : min(end, start + _CONTEXT) + _CONTEXT // 2]
                found[place, kind, shown.encode("utf-8", "replace").decode()] += cells
    rows = [[*key, cells] for key, cells in sorted(found.items())]
    return of_rows(_COLUMNS, rows, report="scrub", title="What is left that looks like a secret", empty=_NO_SECRETS)


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


def _secrets_in(text: str, sensitive: Sensitive) -> Iterator[tuple[str, int, int]]:
    yield from formats_in(text)
    yield from named_in(text)
    if text not in sensitive.kernels and not _SYMBOL.match(text):
        yield from random_in(text)
    yield from addresses_in(text)
    for word in (*sensitive.users, *sensitive.hosts, *sensitive.values):
        # A shorter word may be a part of any other.
        if len(word) > 5 and (at := text.find(word)) >= 0:
            yield "environment, host or user", at, at + len(word)
