"""Copy a SQLite export table by table. Every text in every column is rewritten, for any table and column type."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

from nsys_insight import progress
from nsys_insight.facts.captured import redact_settings
from nsys_insight.ingest import private
from nsys_insight.ingest.expected_schema import name_rows
from nsys_insight.ingest.sqlite_file import explain_damage, read_only_uri
from nsys_insight.ingest.waiting import wait_for
from nsys_insight.scrub.wide_text import find_wide, rewrite_wide
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nsys_insight.scrub.rewrite import Rewriter
    from nsys_insight.scrub.sensitive import Sensitive

_TABLES_QUERY = (
    "SELECT name FROM trace.sqlite_master WHERE type = 'table' AND rootpage > 0 AND substr(name, 1, 7) <> 'sqlite_'"
)
# Settings that contain the file names of the export.
_FILE_SETTING = re.compile(r"EXPORT_PARAM_.*_(?:FILE|PATH)(?:_ABS)?")
_TIME_COLUMN = re.compile(r"(?i)(?:start|end|.*timestamp|(?:start|stop|end)time)(?:ns)?")
_DATE = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:Z|[+-]\d\d:?\d\d)(?: [A-Z]{3,4})?)?)?"
)
_FIRST_DAY = "1970-01-01T00:00:00"
# Tables about the capture: their text that looks like a date is a date.
_CAPTURE_TABLES = (*private.SETTINGS_TABLES, "DIAGNOSTIC_EVENT")
_MACHINE_PREFIX = "TARGET_INFO_"
# Cells with the program's output. No report reads them.
_OUTPUT_CELLS = {("ANALYSIS_FILE", "content")}


def copy_export(source: Path, target: Path, rewriter: Rewriter, sensitive: Sensitive, shift_ns: int | None) -> None:
    """Copy an export into an empty file. With `shift_ns`, subtract it from all times and remove dates.

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
        ) as connection,
    ):
        work = pool.submit(_copy_tables, connection, source, rewriter, sensitive, shift_ns)
        wait_for([work], [connection])
        with explain_damage(source):
            work.result()


def _copy_tables(  # noqa: C901 - a function for each kind of cell
    connection: sqlite3.Connection, source: Path, rewriter: Rewriter, sensitive: Sensitive, shift_ns: int | None
) -> None:
    with closing(_open(source)) as trace:
        (encoding,) = trace.execute("PRAGMA encoding").fetchone()
    for setting in (f"encoding = '{encoding}'", "journal_mode = OFF", "synchronous = OFF", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("ATTACH ? AS trace", (read_only_uri(source),))
    codec = encoding.lower()

    def rewrite_text(cell: bytes) -> bytes:
        if codec == "utf-8" and b"\0" in cell and (wide_cell := rewrite_wide(cell, rewriter.rewrite)) is not None:
            return wide_cell
        return rewriter.rewrite(cell.decode(codec, "surrogateescape")).encode(codec, "surrogateescape")

    def rewrite_undated(cell: bytes) -> bytes:
        return _DATE.sub(_FIRST_DAY, rewrite_text(cell).decode(codec, "surrogateescape")).encode(
            codec, "surrogateescape"
        )

    def rewrite_blob(cell: bytes) -> bytes:
        if (wide_cell := rewrite_wide(cell, rewriter.rewrite)) is not None:
            return wide_cell
        try:
            return rewriter.rewrite(cell.decode()).encode()
        except UnicodeError:
            return b""

    def filter_payload(cell: bytes) -> bytes:
        """Keep a payload of numbers, such as NCCL's communicator and size. Drop a payload with text to rewrite."""
        texts = [cell.decode(codec, "surrogateescape"), *find_wide(cell)]
        return cell if all(rewriter.rewrite(text) == text for text in texts) else b""

    functions = {
        "rewrite_text": rewrite_text,
        "rewrite_undated": rewrite_undated,
        "rewrite_blob": rewrite_blob,
        "filter_payload": filter_payload,
    }
    for name, function in functions.items():
        connection.create_function(name, 1, function, deterministic=True)
    connection.execute("CREATE TEMP TABLE output_ids (id INTEGER PRIMARY KEY)")
    connection.executemany(
        "INSERT OR IGNORE INTO output_ids VALUES (?)", [(id_,) for id_ in sensitive.output_ids if id_ is not None]
    )
    tables = [name for (name,) in connection.execute(_TABLES_QUERY).fetchall()]
    with progress.show_task("rewriting") as task:
        for number, table in enumerate(tables):
            task.text, task.percent = f"rewriting {name_rows(table)}", 100 * number / len(tables)
            _copy_table(connection, table, shift_ns)
    for table in tables:
        if table in private.SETTINGS_TABLES:
            _copy_settings(connection, table, rewriter, codec, keep_dates=shift_ns is None)


def _open(source: Path) -> sqlite3.Connection:
    import sqlite3

    return sqlite3.connect(read_only_uri(source), uri=True)


def _copy_table(connection: sqlite3.Connection, table: str, shift_ns: int | None) -> None:
    columns = connection.execute(
        "SELECT name, type, \"notnull\", pk FROM pragma_table_info(?, 'trace')", (table,)
    ).fetchall()
    key_columns = [name for name, *_, key in columns if key]
    definitions = [
        " ".join(
            [
                identifier(name),
                kind if re.fullmatch(r"[A-Za-z ]*(?:\(\d+\))?", kind) else "",
                "NOT NULL" if required else "",
                "PRIMARY KEY" if key_columns == [name] else "",
            ]
        ).strip()
        for name, kind, required, _ in columns
    ]
    connection.execute(f"CREATE TABLE main.{identifier(table)} ({', '.join(definitions)})")
    if table in private.SETTINGS_TABLES:
        return
    cells = ", ".join(_write_cell(table, name, shift_ns) for name, *_ in columns)
    filter_sql = ""
    if table == "TARGET_INFO_SYSTEM_ENV" and "name" in {name for name, *_ in columns}:
        filter_sql = "WHERE name IS NULL OR NOT private(name)"
        connection.create_function("private", 1, lambda name: private.is_private(str(name)), deterministic=True)
    connection.execute(
        f"INSERT INTO main.{identifier(table)} SELECT {cells} FROM trace.{identifier(table)} {filter_sql}"
    )


def _write_cell(table: str, column: str, shift_ns: int | None) -> str:
    """Write the SQL expression that replaces a cell."""
    name = identifier(column)
    is_about_capture = table in _CAPTURE_TABLES or table.startswith(_MACHINE_PREFIX)
    function = "rewrite_undated" if shift_ns is not None and is_about_capture else "rewrite_text"
    text = f"CAST({function}(CAST({name} AS BLOB)) AS TEXT)"
    if (table, column) in _OUTPUT_CELLS:
        text = "''"
    elif (table, column) == ("StringIds", "value"):
        text = f"CASE WHEN id IN (SELECT id FROM temp.output_ids) THEN '' ELSE {text} END"
    number = name
    if shift_ns is not None and column == "utcEpochNs":
        number = "0"
    elif shift_ns is not None and _TIME_COLUMN.fullmatch(column):
        number = f"{name} - {shift_ns}"
    integer_case = f" WHEN 'integer' THEN {number}" if number != name else ""
    blob = "filter_payload" if (table, column) == ("NVTX_EVENTS", "binaryData") else "rewrite_blob"
    return f"CASE typeof({name}) WHEN 'text' THEN {text} WHEN 'blob' THEN {blob}({name}){integer_case} ELSE {name} END"


def _copy_settings(
    connection: sqlite3.Connection, table: str, rewriter: Rewriter, codec: str, *, keep_dates: bool
) -> None:
    """Copy the public settings, with masked arguments. The environment, the host and the user are private."""
    columns = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?, 'trace')", (table,))}
    if columns != {"name", "value"}:
        return
    rows = connection.execute(
        f"SELECT CAST(name AS BLOB), CAST(value AS BLOB) FROM trace.{identifier(table)}"
    ).fetchall()
    decoded = [[None if cell is None else cell.decode(codec, "surrogateescape") for cell in row] for row in rows]
    settings = [("", name, value) for name, value in decoded]

    def encode(cell: str | None, change: Callable[[str], str]) -> bytes | None:
        return None if cell is None else change(cell).encode(codec, "surrogateescape")

    def rewrite_value(cell: str) -> str:
        return rewriter.rewrite(cell) if keep_dates else _DATE.sub(_FIRST_DAY, rewriter.rewrite(cell))

    rewritten_settings: Sequence[tuple[bytes | None, bytes | None]] = [
        (encode(name, rewriter.rewrite), encode(value, str if (name or "").endswith("VERSION") else rewrite_value))
        for _, name, value in redact_settings(settings)
        if not _FILE_SETTING.fullmatch(name or "")
    ]
    connection.executemany(
        f"INSERT INTO main.{identifier(table)} (name, value) VALUES (CAST(? AS TEXT), CAST(? AS TEXT))",
        rewritten_settings,
    )
