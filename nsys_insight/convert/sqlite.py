"""Write the part of a trace in scope as a SQLite export that nsys-insight reads, without private data."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from nsys_insight.ingest.expected_schema import read_expected_schema
from nsys_insight.session.exported_rows import select_exported_rows
from nsys_insight.sql.quoting import identifier
from nsys_insight.sql.statements import Statement

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_insight.session.session import Session

_TYPES = {"BIGINT": "INTEGER", "INTEGER": "INTEGER", "BOOLEAN": "INTEGER", "DOUBLE": "REAL"}


def write_part(trace: Session, path: Path) -> None:
    """Write the rows of each raw table that are in scope. As in nsys's own exports, empty tables are left out."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = OFF")
        file.execute("BEGIN")
        for table, columns in read_expected_schema().items():
            names, marks = ", ".join(map(identifier, columns)), ", ".join("?" * len(columns))
            declarations = (f"{identifier(name)} {_TYPES.get(kind, 'TEXT')}" for name, kind in columns.items())
            is_created = False
            for batch in trace.stream(Statement(f"SELECT {names} FROM ({select_exported_rows(table)})")).batches():
                if batch and not is_created:
                    file.execute(f"CREATE TABLE {identifier(table)} ({', '.join(declarations)})")
                    is_created = True
                file.executemany(f"INSERT INTO {identifier(table)} VALUES ({marks})", batch)
        file.execute("COMMIT")
