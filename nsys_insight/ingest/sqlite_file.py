"""Opening a SQLite file to read it: nothing appears beside it, for it is neither locked nor is a journal looked for."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from nsys_insight.errors import TraceError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path


def uri(path: Path) -> str:
    """The file as SQLite opens it for reading alone."""
    return f"{path.absolute().as_uri()}?mode=ro&immutable=1"


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file for the length of a block.

    Raises:
        sqlite3.Error: It cannot be opened, or the block met something in it that cannot be read.
    """
    import sqlite3

    with closing(sqlite3.connect(uri(path), uri=True)) as connection:
        try:
            yield connection
        except UnicodeDecodeError:  # Python's, of SQLite's own message, which quotes the file
            raise sqlite3.DatabaseError("it holds a name that is not UTF-8") from None


def sqlite_columns(path: Path) -> dict[str, set[str]]:
    """The tables of a SQLite file with their columns.

    Raises:
        TraceError: The file is damaged.
    """
    import sqlite3

    found: dict[str, set[str]] = {}
    try:
        with opened(path) as database:
            for table, column in database.execute(
                "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'"
            ):
                found.setdefault(table, set()).add(column)
    except sqlite3.Error as error:
        raise TraceError(f"{path} cannot be read: {error}", "export it again: nsys export --type sqlite") from None
    return found
