"""The model as a template: a DuckDB file with all views and macros, which is copied into each new connection.

Creating the model takes half a second; copying it takes 20 ms. The file is made at first use in the cache folder, or in
a temporary folder where the cache is not to be used, and made anew when one of the files it comes from has changed.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from nsys_insight.ingest import cache_folder, raw
from nsys_insight.ingest.scope import describe
from nsys_insight.model import views
from nsys_insight.model.producers import producers
from nsys_insight.paths import package_folder, queries_folder, user_folder
from nsys_insight.sql.quoting import identifier, literal
from nsys_insight.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

_PREFIX = "model-"
_UNUSED_S = 30 * 24 * 60 * 60
# The template that this process used last, and the digest of what it comes from.
_in_use: dict[str, Path] = {}


def copy_into(connection: duckdb.DuckDBPyConnection, *catalogs: str, lasting: bool = True) -> None:
    """Create the model over a trace without any rows in catalogs of a connection.

    The schemas are `raw` and `whole` (the relations that views read), `facts` (views without rows, to be replaced by
    tables), `internal`, and `main` (the views and macros, with their comments).

    Args:
        connection: Any connection that may still attach files.
        catalogs: The names of attached databases that can be written to; none is that of an in-memory connection.
        lasting: Whether the cache folder may be used.
    """
    import duckdb

    catalogs = catalogs or ("memory",)
    try:
        connection.execute(f"ATTACH {literal(str(_path(lasting=lasting)))} AS template (READ_ONLY)")
    except (OSError, duckdb.Error):  # there is no room for it, or it is damaged
        _discard()
        ((own,),) = connection.execute("SELECT current_database()").fetchall()
        for catalog in catalogs:
            connection.execute(f"USE {identifier(catalog)}")
            create(connection)
        connection.execute(f"USE {identifier(own)}")
        return
    for catalog in catalogs:
        connection.execute(f"COPY FROM DATABASE template TO {identifier(catalog)} (SCHEMA)")
    connection.execute("DETACH template")


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the model statement by statement, as the template has it."""
    views.create_macros(connection)
    connection.execute("CREATE SCHEMA facts; CREATE SCHEMA internal")
    raw.create_empty(connection)
    describe(connection)
    for producer in producers().values():
        connection.execute(producer.create)
    for view in views.with_parts(views.definitions()):
        connection.execute(view.create + view.comments)
    _empty_facts(connection)
    # Each session describes its own scope.
    connection.execute(
        "DROP TABLE scope; DROP TABLE internal.scope_windows; DROP TABLE internal.scope_gpus;"
        "DROP TABLE internal.scope_ranges"
    )


def _empty_facts(connection: duckdb.DuckDBPyConnection) -> None:
    """Replace the tables of facts by views without rows, which take a third of the time to copy."""
    columns: dict[str, list[str]] = {}
    described = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE schema_name = 'facts'"
    for table, column, kind in connection.execute(f"{described} ORDER BY column_index").fetchall():
        columns.setdefault(table, []).append(f"NULL::{kind} AS {identifier(column)}")
    for table, nulls in columns.items():
        empty = f"CREATE VIEW facts.{identifier(table)} AS SELECT {', '.join(nulls)} WHERE false"
        connection.execute(f"DROP TABLE facts.{identifier(table)}; {empty}")


def _path(*, lasting: bool) -> Path:
    """The template as its files are now, made if it is not there."""
    digest = _digest()
    if path := _in_use.get(digest):
        if path.is_file():
            return path
        _in_use.clear()
    folder = cache_folder.temporary()
    if lasting:
        with suppress(OSError):
            folder = cache_folder.folder()
    path = folder / f"{_PREFIX}{digest}.duckdb"
    if path.is_file():
        cache_folder.touch(path)
    else:
        _make(path)
        _remove_unused(folder, path)
    _in_use[digest] = path
    return path


def _make(path: Path) -> None:
    """Make the template; two processes may do so at once, and the last one's stays.

    Raises:
        OSError: The folder cannot be written to.
        duckdb.Error: The disk is full.
    """
    import duckdb

    with cache_folder.building(path) as made, duckdb.connect(made) as connection:
        create(connection)


def _discard() -> None:
    for path in _in_use.values():
        with suppress(OSError):
            path.unlink(missing_ok=True)
    _in_use.clear()


def _remove_unused(folder: Path, path: Path) -> None:
    for other in folder.glob(f"{_PREFIX}*.duckdb"):
        with suppress(OSError):
            status = other.stat()
            if other != path and time.time() - max(status.st_atime, status.st_mtime) > _UNUSED_S:
                other.unlink()


def _digest() -> str:
    """Stand for all files that the template comes from, by their sizes and times of change."""
    return cache_folder.digest(*_of_package(), *sorted(_identities(user_folder("catalog"))))


@cache
def _of_package() -> list[str]:
    import duckdb

    folders = [queries_folder() / name for name in ("catalog", "facts", "model")]
    folders += [package_folder() / "model", package_folder() / "ingest"]
    return [__version__, duckdb.__version__, *(each for folder in folders for each in sorted(_identities(folder)))]


def _identities(folder: Path | str) -> Iterator[str]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _identities(entry.path)
            elif entry.name.endswith((".sql", ".toml", ".py")):
                status = entry.stat()
                yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"
