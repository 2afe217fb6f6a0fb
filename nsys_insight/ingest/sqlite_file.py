"""Opening a SQLite file to read it: nothing appears beside it, for it is neither locked nor is a journal looked for."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

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
