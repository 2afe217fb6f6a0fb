"""Checks of a scrubbed file: its reports give the same numbers, and what in it still looks private is listed."""

from __future__ import annotations

import math
import re
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight import progress
from nsys_insight.errors import InsightError
from nsys_insight.ingest.sqlite_file import read_only_uri
from nsys_insight.packs.library import built_in_packs
from nsys_insight.render.json_ import make_plain
from nsys_insight.scrub.paths import ROOTS, find_paths
from nsys_insight.scrub.rewrite import Rewriter, find_addresses
from nsys_insight.scrub.wide_text import decode_wide, find_wide
from nsys_insight.session.answer import Answer, build_answer, read_columns
from nsys_insight.sql.quoting import identifier
from nsys_insight.text.secrets import MASK, find_known_formats, find_named_secrets, find_random_words

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from nsys_insight.packs.pack import Pack
    from nsys_insight.scrub.sensitive import Sensitive
    from nsys_insight.session.session import Session

_TIME_COLUMNS = ("start_ns", "end_ns", "timestamp_ns")
# Floating point sums depend on the order in which threads add the numbers.
_TOLERANCE = 1e-6
_COLUMNS = read_columns("scrub/remaining")
_CONTEXT = 60
# Public symbols that look random: of C++, Cython, and CUDA's static runtime.
_SYMBOL = re.compile(r"_Z|__pyx_|libcudart_static_[0-9a-f]{40}\Z")
_NOTHING_PRIVATE = "What looks private and stays: nothing"


def find_differing_reports(before: Session, after: Session, shift_ns: int) -> list[str]:
    """Return the reports whose numbers differ between two traces. The times of the second trace are `shift_ns` less.

    Texts may differ, but each column must have the same number of distinct texts in both.
    """
    before.load()
    after.load()
    differing = []
    with progress.show_task("comparing the reports") as task:
        for number, (name, pack) in enumerate(built_in_packs().items()):
            task.text, task.percent = f"comparing {name}", 100 * number / len(built_in_packs())
            if not _are_equal(_read_numbers(before, pack, shift_ns), _read_numbers(after, pack, 0)):
                differing.append(name)
    return differing


class _ReportNumbers(NamedTuple):
    """The part of an answer that must agree: the numbers of each row, and the number of distinct texts of each column.

    If the report fails, `text_counts` is the type of the error.
    """

    rows: list[tuple[list[str], list[float]]]
    text_counts: object


def _read_numbers(trace: Session, pack: Pack, shift_ns: int) -> _ReportNumbers:
    try:
        answer = trace.answer(pack)
    except InsightError as error:
        return _ReportNumbers([], type(error))
    rows = answer.rows()
    text_indexes = [index for index, column in enumerate(answer.columns) if "VARCHAR" in column.type]
    text_counts = [len({row[index] for row in rows}) for index in text_indexes], len(answer.notes)
    return _ReportNumbers(sorted(_split_row(answer, row, shift_ns) for row in rows), text_counts)


def _split_row(answer: Answer, row: tuple[Any, ...], shift_ns: int) -> tuple[list[str], list[float]]:
    """Split a row into its exact cells, which identify it, and its floating point numbers."""
    exact, floats = [], []
    for column, cell in zip(answer.columns, row, strict=True):
        value = make_plain(cell)
        if isinstance(value, float):
            floats.append(value)
        elif "VARCHAR" not in column.type:
            is_time = isinstance(value, int) and column.name.endswith(_TIME_COLUMNS)
            exact.append(str(value - shift_ns if is_time else value))
    return exact, floats


def _are_equal(first: _ReportNumbers, second: _ReportNumbers) -> bool:
    return (
        first.text_counts == second.text_counts
        and [exact for exact, _ in first.rows] == [exact for exact, _ in second.rows]
        and all(
            len(left) == len(right)
            and all(
                math.isclose(*pair, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) for pair in zip(left, right, strict=True)
            )
            for (_, left), (_, right) in zip(first.rows, second.rows, strict=True)
        )
    )


def find_remaining_secrets(file: Path, sensitive: Sensitive, rewriter: Rewriter) -> Answer:
    """List the texts of a SQLite file that look private, or contain a known private word, without showing what is.

    The stand-ins that `rewriter` wrote are not listed.
    """
    import sqlite3

    cell_counts: Counter[tuple[str, str, str]] = Counter()
    with (
        closing(sqlite3.connect(read_only_uri(file), uri=True)) as database,
        progress.show_task("looking for private data that is left"),
    ):
        database.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        for place, text, cells in _read_texts(database):
            spans = sorted(
                (start, end, kind)
                for kind, start, end in _find_private(text, sensitive)
                if not rewriter.is_stand_in(text[start:end])
            )
            for start, end, kind in spans:
                example = _mask_example(text, start, end, [span[:2] for span in spans])
                cell_counts[place, kind, example.encode("utf-8", "replace").decode()] += cells
    rows = [[*key, cells] for key, cells in sorted(cell_counts.items())]
    return build_answer(_COLUMNS, rows, report="scrub", title="What looks private and stays", empty=_NOTHING_PRIVATE)


def _mask_example(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> str:
    """Write a text of up to 120 characters around a span, with the first characters of the span: to find it by."""
    first, last = max(start - _CONTEXT // 2, 0), end + _CONTEXT // 2
    pieces, position = [], first
    for span_start, span_end in spans:
        if span_end > position and span_start < last:
            visible = min(3, (span_end - span_start) // 4)
            beginning = (
                text[max(span_start, position) : max(span_start, position) + visible] if span_start >= first else ""
            )
            pieces += [text[position : max(span_start, position)], beginning, MASK]
            position = span_end
    return "".join([*pieces, text[position:last]])[: 2 * _CONTEXT]


def _read_texts(database: sqlite3.Connection) -> Iterator[tuple[str, str, int]]:
    """Yield every text of a file with its place and its number of cells, and the definitions of the tables."""
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
                for text in _read_cell(cell):
                    yield f"{table}.{column}", text, cells


def _read_cell(cell: str | bytes) -> Iterator[str]:
    if isinstance(cell, bytes):
        if wide := decode_wide(cell):
            yield wide[0]
            return
        yield cell.decode("utf-8", "replace")
    else:
        yield cell
    if "\0" in cell if isinstance(cell, str) else b"\0" in cell:
        yield from find_wide(cell.encode("utf-8", "surrogateescape") if isinstance(cell, str) else cell)


def _find_private(text: str, sensitive: Sensitive) -> Iterator[tuple[str, int, int]]:
    yield from find_known_formats(text)
    yield from find_named_secrets(text)
    if text not in sensitive.kernels and not _SYMBOL.match(text):
        yield from find_random_words(text)
    yield from find_addresses(text)
    if "/" in text or "\\" in text:
        yield from (("path", *span) for span in find_paths(text, ROOTS | sensitive.roots))
    for word in (*sensitive.users, *sensitive.hosts, *sensitive.values):
        # A shorter word may be a part of other words.
        if len(word) > 5 and (start := text.find(word)) >= 0:
            yield "environment, host or user", start, start + len(word)
