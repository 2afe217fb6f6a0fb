"""A SQLite export copied table by table: every text of every column rewritten, whatever table or type it is of."""

from __future__ import annotations

import errno
import os
import re
from contextlib import closing
from typing import TYPE_CHECKING

from nsys_insight import progress
from nsys_insight.errors import TraceError
from nsys_insight.facts.captured import shown
from nsys_insight.ingest import private
from nsys_insight.ingest.sqlite_file import uri
from nsys_insight.ingest.waiting import wait_for
from nsys_insight.ingest.words import rows_of
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nsys_insight.scrub.rewrite import Rewriter
    from nsys_insight.scrub.sensitive import Sensitive

_TABLES = (
    "SELECT name FROM trace.sqlite_master WHERE type = 'table' AND rootpage > 0 AND substr(name, 1, 7) <> 'sqlite_'"
)
# Settings that name the files of the export.
_FILE = re.compile(r"EXPORT_PARAM_.*_(?:FILE|PATH)(?:_ABS)?")
_TIME = re.compile(r"(?i)(?:start|end|.*timestamp|(?:start|stop|end)time)(?:ns)?")
_DATE = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:Z|[+-]\d\d:?\d\d)(?: [A-Z]{3,4})?)?)?"
)
_DAY = "1970-01-01T00:00:00"
# Tables about the capture: text that looks like a date is one.
_OF_CAPTURE = (*private.SETTINGS, "DIAGNOSTIC_EVENT")
_OF_MACHINE = "TARGET_INFO_"
# What the program printed; no report reads it.
_PRINTED = {("ANALYSIS_FILE", "content")}


def copy(source: Path, target: Path, rewriter: Rewriter, sensitive: Sensitive, shift_ns: int | None) -> None:
    """Copy an export into a file that is empty, with times earlier by `shift_ns` and no dates, if that is given.

    Raises:
        TraceError: The file is damaged.
        OSError: The disk is full.
        KeyboardInterrupt: Ctrl-C was typed.
    """
    import sqlite3
    from concurrent.futures import ThreadPoolExecutor

    with (
        ThreadPoolExecutor(1) as pool,
        closing(
            sqlite3.connect(target.absolute().as_uri(), uri=True, check_same_thread=False, isolation_level=None)
        ) as made,
    ):
        work = pool.submit(_copy, made, source, rewriter, sensitive, shift_ns)
        wait_for([work], [made])
        try:
            work.result()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
            raise TraceError(
                f"{source} is a damaged SQLite file: {error}", "export the report again: nsys export --type sqlite"
            ) from None


def _copy(  # noqa: C901 - a function for each kind of cell
    made: sqlite3.Connection, source: Path, rewriter: Rewriter, sensitive: Sensitive, shift_ns: int | None
) -> None:
    with closing(_opened(source)) as trace:
        (encoding,) = trace.execute("PRAGMA encoding").fetchone()
    for setting in (f"encoding = '{encoding}'", "journal_mode = OFF", "synchronous = OFF", "trusted_schema = OFF"):
        made.execute(f"PRAGMA {setting}")
    made.execute("ATTACH ? AS trace", (uri(source),))
    codec = encoding.lower()

    def rewritten(cell: bytes) -> bytes:
        return rewriter.text(cell.decode(codec, "surrogateescape")).encode(codec, "surrogateescape")

    def undated(cell: bytes) -> bytes:
        return _DATE.sub(_DAY, rewritten(cell).decode(codec, "surrogateescape")).encode(codec, "surrogateescape")

    def of_blob(cell: bytes) -> bytes:
        try:
            return rewriter.text(cell.decode()).encode()
        except UnicodeError:
            return b""

    def of_payload(cell: bytes) -> bytes:
        """Keep numbers, such as NCCL's communicator and size; drop a payload in which there is something to rewrite."""
        text = cell.decode(codec, "surrogateescape")
        return cell if rewriter.text(text) == text else b""

    functions = {"rewritten": rewritten, "undated": undated, "of_blob": of_blob, "of_payload": of_payload}
    for name, function in functions.items():
        made.create_function(name, 1, function, deterministic=True)
    made.execute("CREATE TEMP TABLE printed (id INTEGER PRIMARY KEY)")
    made.executemany(
        "INSERT OR IGNORE INTO printed VALUES (?)", [(id_,) for id_ in sensitive.streams if id_ is not None]
    )
    tables = [name for (name,) in made.execute(_TABLES).fetchall()]
    with progress.at("rewriting") as task:
        for number, table in enumerate(tables):
            task.text, task.percent = f"rewriting {rows_of(table)}", 100 * number / len(tables)
            _copy_table(made, table, shift_ns)
    for table in tables:
        if table in private.SETTINGS:
            _copy_settings(made, table, rewriter, codec, dated=shift_ns is None)


def _opened(source: Path) -> sqlite3.Connection:
    import sqlite3

    return sqlite3.connect(uri(source), uri=True)


def _copy_table(made: sqlite3.Connection, table: str, shift_ns: int | None) -> None:
    columns = made.execute("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?, 'trace')", (table,)).fetchall()
    keys = [name for name, *_, key in columns if key]
    definitions = [
        " ".join(
            [
                identifier(name),
                kind if re.fullmatch(r"[A-Za-z ]*(?:\(\d+\))?", kind) else "",
                "NOT NULL" if required else "",
                "PRIMARY KEY" if keys == [name] else "",
            ]
        ).strip()
        for name, kind, required, _ in columns
    ]
    made.execute(f"CREATE TABLE main.{identifier(table)} ({', '.join(definitions)})")
    if table in private.SETTINGS:
        return
    cells = ", ".join(_cell(table, name, shift_ns) for name, *_ in columns)
    where = ""
    if table == "TARGET_INFO_SYSTEM_ENV" and "name" in {name for name, *_ in columns}:
        where = "WHERE name IS NULL OR NOT private(name)"
        made.create_function("private", 1, lambda name: private.is_private(str(name)), deterministic=True)
    made.execute(f"INSERT INTO main.{identifier(table)} SELECT {cells} FROM trace.{identifier(table)} {where}")


def _cell(table: str, column: str, shift_ns: int | None) -> str:
    """SQL for what stands in the place of a cell."""
    name = identifier(column)
    of_capture = table in _OF_CAPTURE or table.startswith(_OF_MACHINE)
    text = f"CAST({'undated' if shift_ns is not None and of_capture else 'rewritten'}(CAST({name} AS BLOB)) AS TEXT)"
    if (table, column) in _PRINTED:
        text = "''"
    elif (table, column) == ("StringIds", "value"):
        text = f"CASE WHEN id IN (SELECT id FROM temp.printed) THEN '' ELSE {text} END"
    number = name
    if shift_ns is not None and column == "utcEpochNs":
        number = "0"
    elif shift_ns is not None and _TIME.fullmatch(column):
        number = f"{name} - {shift_ns}"
    others = f" WHEN 'integer' THEN {number}" if number != name else ""
    blob = "of_payload" if (table, column) == ("NVTX_EVENTS", "binaryData") else "of_blob"
    return f"CASE typeof({name}) WHEN 'text' THEN {text} WHEN 'blob' THEN {blob}({name}){others} ELSE {name} END"


def _copy_settings(made: sqlite3.Connection, table: str, rewriter: Rewriter, codec: str, *, dated: bool) -> None:
    """Copy the settings that may be shown, with masked arguments: the environment, the host and the user are none."""
    columns = {name for (name,) in made.execute("SELECT name FROM pragma_table_info(?, 'trace')", (table,))}
    if columns != {"name", "value"}:
        return
    rows = made.execute(f"SELECT CAST(name AS BLOB), CAST(value AS BLOB) FROM trace.{identifier(table)}").fetchall()
    decoded = [[None if cell is None else cell.decode(codec, "surrogateescape") for cell in row] for row in rows]
    settings = [("", name, said) for name, said in decoded]

    def text(cell: str | None, change: Callable[[str], str]) -> bytes | None:
        return None if cell is None else change(cell).encode(codec, "surrogateescape")

    def value(cell: str) -> str:
        return rewriter.text(cell) if dated else _DATE.sub(_DAY, rewriter.text(cell))

    kept: Sequence[tuple[bytes | None, bytes | None]] = [
        (text(name, rewriter.text), text(said, str if (name or "").endswith("VERSION") else value))
        for _, name, said in shown(settings)
        if not _FILE.fullmatch(name or "")
    ]
    made.executemany(
        f"INSERT INTO main.{identifier(table)} (name, value) VALUES (CAST(? AS TEXT), CAST(? AS TEXT))", kept
    )
