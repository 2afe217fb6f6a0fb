"""The model as a template: a DuckDB file with all views and macros, which is copied into each new connection.

Creating the model takes a second; copying it takes 20 ms. An installation brings the file (`build_hook.py`). If one of
its source files has changed since, or with catalogs of the user, it is built at first use in the cache folder, or in a
temporary folder if the cache must not be used.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from nsys_insight import cache_folder, own_files
from nsys_insight.ingest import raw
from nsys_insight.ingest.scope import write_scope_table
from nsys_insight.model import views
from nsys_insight.paths import package_folder, queries_folder, user_folder
from nsys_insight.records import parse_json
from nsys_insight.sql.quoting import identifier, literal
from nsys_insight.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

# In the package's folder.
PACKAGED_FILE, PACKAGED_MANIFEST = "template/model.duckdb", "template/about.json"
_PREFIX = "model-"
_UNUSED_S = 30 * 24 * 60 * 60
# The template that this process used last, by the digest of its source files.
_in_use: dict[str, Path] = {}


def copy_into(connection: duckdb.DuckDBPyConnection, *catalogs: str, use_cache: bool = True) -> None:
    """Create the model over an empty trace in catalogs of a connection.

    The schemas are `raw` (the relations that views read) and its unscoped counterpart, `facts` (views without rows, to
    be replaced by tables), `internal` (the tables of the catalog of constructs), and `main` (the views and macros, with
    their comments).

    Args:
        connection: A connection that can still attach files.
        catalogs: The names of writable attached databases; by default `memory`, that of an in-memory connection.
        use_cache: Whether the cache folder can be used.
    """
    import duckdb

    catalogs = catalogs or ("memory",)
    try:
        connection.execute(f"ATTACH {literal(str(_find_template(use_cache=use_cache)))} AS template (READ_ONLY)")
    except (OSError, duckdb.Error):  # the disk is full, or the file is damaged
        _discard()
        ((current_catalog,),) = connection.execute("SELECT current_database()").fetchall()
        for catalog in catalogs:
            connection.execute(f"USE {identifier(catalog)}")
            create_model(connection)
        connection.execute(f"USE {identifier(current_catalog)}")
        return
    for catalog in catalogs:
        connection.execute(f"COPY FROM DATABASE template TO {identifier(catalog)}")
    connection.execute("DETACH template")


def create_model(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the model of the template statement by statement."""
    views.create_macros(connection)
    connection.execute("CREATE SCHEMA facts; CREATE SCHEMA IF NOT EXISTS internal")
    raw.create_empty(connection)
    write_scope_table(connection)
    for declared in views.read_declarations().values():
        for name, table in declared["tables"].items():
            types = {column: kind for column, kind, _ in views.split_columns(table["columns"])}
            _create_fact(connection, name.removeprefix("_"), types)
    for view in views.list_in_creation_order():
        if view.is_stored and view.query:
            description = connection.execute(f"DESCRIBE {view.query}").fetchall()
            _create_fact(connection, view.table, {column: kind for column, kind, *_ in description})
        connection.execute(view.create)
    for name, columns in views.list_columns(connection).items():
        connection.execute(views.definitions()[name].write_comments(columns))
    # Each session creates the tables of its own scope.
    connection.execute(
        "DROP TABLE scope; DROP TABLE internal.scope_windows; DROP TABLE internal.scope_gpus;"
        "DROP TABLE internal.scope_ranges"
    )


def _create_fact(connection: duckdb.DuckDBPyConnection, name: str, columns: dict[str, str]) -> None:
    """Create a fact with these columns and types as a view without rows: a table takes three times as long to copy."""
    nulls = ", ".join(f"NULL::{kind} AS {identifier(column)}" for column, kind in columns.items())
    connection.execute(f"CREATE VIEW facts.{name} AS SELECT {nulls} WHERE false")


def _find_template(*, use_cache: bool) -> Path:
    """Return the template of the current source files; build it if it does not exist."""
    packaged = package_folder() / PACKAGED_FILE
    if _is_packaged_current() and packaged.is_file() and not _list_user_catalogs():
        return packaged
    # By the sizes and modification times of all source files.
    digest = cache_folder.digest(_digest_package(has_times=True), *_list_user_catalogs())
    if path := _in_use.get(digest):
        if path.is_file():
            return path
        _in_use.clear()
    folder = cache_folder.temporary_folder()
    if use_cache:
        with suppress(OSError):
            folder = cache_folder.folder()
    path = folder / f"{_PREFIX}{digest}.duckdb"
    if path.is_file():
        cache_folder.touch(path)
    else:
        _build(path)
        _remove_unused(folder, path)
    _in_use[digest] = path
    return path


@cache
def _is_packaged_current() -> bool:
    """Return whether the template of the installation is made from its current files."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        manifest = parse_json((package_folder() / PACKAGED_MANIFEST).read_text(encoding="utf-8"))
        return bool(manifest["digest"] == _digest_package(has_times=manifest["has_times"]))
    return False


def describe_package(*, has_times: bool) -> str:
    """Return the manifest of a template for an installation: the digest of the files that it is made from.

    An editable installation uses the files of the checkout, so their times count. Other installations set new times.
    """
    return json.dumps({"digest": _digest_package(has_times=has_times), "has_times": has_times})


def _build(path: Path) -> None:
    """Build the template. Two processes may do so at once: the file of the last one stays.

    Raises:
        OSError: The folder is not writable.
        duckdb.Error: The disk is full.
    """
    with cache_folder.write_atomically(path) as temporary:
        write_template(temporary)


def write_template(path: Path) -> None:
    """Write the template to a new file.

    Raises:
        duckdb.Error: The file cannot be written.
    """
    import duckdb

    with duckdb.connect(path) as connection:
        # One transaction: each of these thousands of statements would be written to the disk.
        connection.execute("BEGIN")
        create_model(connection)
        connection.execute("COMMIT")


def _discard() -> None:
    for path in _in_use.values():
        with suppress(OSError):
            own_files.remove(path)
    _in_use.clear()


def _remove_unused(folder: Path, path: Path) -> None:
    for other in folder.glob(f"{_PREFIX}*.duckdb"):
        with suppress(OSError):
            status = other.stat()
            if other != path and time.time() - max(status.st_atime, status.st_mtime) > _UNUSED_S:
                own_files.remove(other)


def _list_user_catalogs() -> list[str]:
    return sorted(_identities(user_folder("catalog"), "", has_times=True))


@cache
def _digest_package(*, has_times: bool) -> str:
    """Compute a digest of the package's files, from their names, sizes and, if they count, modification times."""
    import duckdb

    folders = [(queries_folder(), name) for name in ("catalog", "model")]
    folders += [(package_folder(), name) for name in ("facts", "ingest", "model")]
    identities = [
        identity
        for parent, name in folders
        for identity in sorted(_identities(parent / name, f"{name}/", has_times=has_times))
    ]
    return cache_folder.digest(__version__, duckdb.__version__, *identities)


def _identities(folder: Path | str, prefix: str, *, has_times: bool) -> Iterator[str]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _identities(entry.path, f"{prefix}{entry.name}/", has_times=has_times)
            elif entry.name.endswith((".sql", ".toml", ".py")):
                status = entry.stat()
                yield f"{prefix}{entry.name} {status.st_size} {status.st_mtime_ns if has_times else ''}"
