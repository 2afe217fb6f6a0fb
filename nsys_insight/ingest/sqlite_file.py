"""Opening a SQLite file to read it: nothing appears beside it, for it is neither locked nor is a journal looked for."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path


def uri(path: Path) -> str:
    """The file as SQLite opens it for reading alone."""
    return f"{path.absolute().as_uri()}?mode=ro&immutable=1"


def opened(path: Path) -> closing[sqlite3.Connection]:
    """Open a file for the length of a block.

    Raises:
        sqlite3.Error: It cannot be opened.
    """
    import sqlite3

    return closing(sqlite3.connect(uri(path), uri=True))
