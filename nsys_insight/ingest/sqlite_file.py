"""Open a SQLite file for reading. Nothing is written next to it: it is neither locked nor searched for a journal."""

from __future__ import annotations

import errno
import os
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from nsys_insight.errors import TraceError
from nsys_insight.ingest.waiting import is_stopped

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path


EXPORT_HINT = "export the report again: nsys export --type sqlite -o trace.sqlite trace.nsys-rep"
# `is_stopped` is called after this many instructions of SQLite's virtual machine.
_CHECK_INTERVAL = 100_000


def read_only_uri(path: Path) -> str:
    """Return the URI that makes SQLite open the file read-only."""
    return f"{path.absolute().as_uri()}?mode=ro&immutable=1"


@contextmanager
def open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file for the duration of a block.

    Raises:
        sqlite3.Error: It cannot be opened, or the block met something unreadable in it.
    """
    import sqlite3

    with closing(sqlite3.connect(read_only_uri(path), uri=True)) as connection:
        connection.set_progress_handler(is_stopped, _CHECK_INTERVAL)
        try:
            yield connection
        except UnicodeDecodeError:  # Python cannot decode SQLite's message, which quotes the file
            raise sqlite3.DatabaseError("it holds a name that is not UTF-8") from None


@contextmanager
def explain_damage(path: Path) -> Iterator[None]:
    """Make SQLite's errors in a block errors about the trace that it reads or copies.

    Raises:
        TraceError: The file is damaged.
        OSError: The disk of the copy is full.
    """
    import sqlite3

    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
        raise TraceError(f"{path} is a damaged SQLite file: {error}", EXPORT_HINT) from error


def read_sqlite_columns(path: Path) -> dict[str, set[str]]:
    """Return the tables of a SQLite file with their columns.

    Raises:
        TraceError: The file is damaged.
    """
    return {table: set(types) for table, types in read_sqlite_types(path).items()}


def read_sqlite_types(path: Path) -> dict[str, dict[str, str]]:
    """Return the tables of a SQLite file with their columns, and the types that they are declared with.

    Raises:
        TraceError: The file is damaged.
    """
    types_by_table: dict[str, dict[str, str]] = {}
    with explain_damage(path), open_read_only(path) as database:
        for table, column, kind in database.execute(
            """SELECT m.name, c.name, c.type FROM sqlite_master AS m, pragma_table_info(m.name) AS c
            WHERE m.type = 'table'"""
        ):
            types_by_table.setdefault(table, {})[column] = kind
    return types_by_table
