"""Convert a trace to a DuckDB file, a folder of Parquet files or a SQLite file, or to a timeline."""

from __future__ import annotations

import errno
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import cache_folder, outputs, own_files, progress
from nsys_insight.errors import QueryError, UsageError, cannot_write_error
from nsys_insight.ingest import bad_rows, private
from nsys_insight.ingest.expected_schema import read_expected_schema
from nsys_insight.ingest.limits import Limits
from nsys_insight.ingest.private import select_exported_rows
from nsys_insight.model import template, views
from nsys_insight.session.model import finish_stored_model
from nsys_insight.sql.quoting import identifier, read_parquet
from nsys_insight.sql.statements import Statement

if TYPE_CHECKING:
    import duckdb

    from nsys_insight.session.session import Session

_BY_SUFFIX = {
    ".duckdb": "duckdb",
    ".parquet": "parquet",
    ".sqlite": "sqlite",
    ".pftrace": "perfetto",
    ".perfetto-trace": "perfetto",
}
# The views of the model in a DuckDB file, with those that are not documented.
_VIEW_SCHEMA = "model"
# Below this size of a trace, a DuckDB file has small blocks: its many small tables take a block each.
_LARGE_BYTES = 256 * 1024 * 1024
_SMALL_BLOCK_BYTES = 16384
# The types of SQLite's columns; others are texts.
_SQLITE_TYPES = {"BIGINT": "INTEGER", "INTEGER": "INTEGER", "BOOLEAN": "INTEGER", "DOUBLE": "REAL"}
KINDS = ("duckdb", "parquet", "sqlite", "perfetto")
_KINDS_OF_PARTS = ("sqlite", "perfetto")


def choose_kind(output: Path, requested_kind: str | None) -> str:
    """Return the format to write: the requested one, else that of the suffix; without a suffix, Parquet files.

    Raises:
        UsageError: There is no such format, or the suffix has none.
    """
    kind = requested_kind or _BY_SUFFIX.get(output.suffix, "" if output.suffix else "parquet")
    if kind not in KINDS:
        problem = (
            f"cannot convert to {requested_kind!r}"
            if requested_kind
            else f"the suffix of {output} is not a known format"
        )
        raise UsageError(problem, f"add --as {'|'.join(KINDS)}, or end the name in {' '.join(_BY_SUFFIX)}")
    return kind


def convert(trace: Session, output: Path, kind: str, *, force: bool = False) -> None:
    """Write a trace in another format; a SQLite file and a timeline contain the part in scope.

    Raises:
        UsageError: The output exists already, or cannot be written.
    """
    trace.refuse_several("convert takes one trace at a time", "name one of them")
    if kind not in _KINDS_OF_PARTS and trace.describe_trace()["scope"]:
        raise UsageError(f"a part of a trace cannot be converted to {kind}", "omit the scope, or add --as sqlite")
    outputs.check_target(output, [*trace.paths, *([trace.ncu] if trace.ncu else [])])
    outputs.refuse_existing(output, force=force)
    try:
        with progress.show_task(f"writing {output.name}"):
            _write(trace, output, kind)
    except OSError as error:
        raise cannot_write_error(output, error) from None


def _write(trace: Session, output: Path, kind: str) -> None:
    if kind == "perfetto":
        from nsys_insight.convert.perfetto import write_timeline

        with outputs.open_output(output, trace.paths, force=True) as path, path.open("wb") as stream:
            write_timeline(trace, stream)
    elif kind == "sqlite":
        with outputs.open_output(output, trace.paths, force=True) as path:
            _write_part(trace, path)
    elif kind == "duckdb":
        _write_database(trace, output)
    else:
        _write_folder(trace, output)


def _write_part(trace: Session, path: Path) -> None:
    """Write the rows of each raw table that are in scope. As in nsys's own exports, empty tables are left out."""
    import sqlite3

    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = OFF")
        file.execute("BEGIN")
        for table, columns in read_expected_schema().items():
            names, marks = ", ".join(map(identifier, columns)), ", ".join("?" * len(columns))
            declarations = (f"{identifier(name)} {_SQLITE_TYPES.get(kind, 'TEXT')}" for name, kind in columns.items())
            is_created = False
            for batch in trace.stream(Statement(f"SELECT {names} FROM ({select_exported_rows(table)})")).batches():
                if batch and not is_created:
                    file.execute(f"CREATE TABLE {identifier(table)} ({', '.join(declarations)})")
                    is_created = True
                file.executemany(f"INSERT INTO {identifier(table)} VALUES ({marks})", batch)
        file.execute("COMMIT")


def _write_database(trace: Session, output: Path) -> None:
    """Write the raw tables as tables, and the views of the model over them, with their comments."""
    import duckdb

    while True:
        try:
            return _write_database_once(trace, output)
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            if isinstance(error, duckdb.IOException):
                raise OSError(errno.EIO, reason) from None
            if not (bad_rows.can_be_row_error(error) and trace.drop_invalid_rows()):
                raise QueryError(f"{trace.path} cannot be converted: {reason}", "convert --as parquet") from None


def _write_database_once(trace: Session, output: Path) -> None:
    import duckdb

    with cache_folder.make_work_path(output.resolve()) as work_path:
        database_file = work_path.with_name("trace.duckdb")  # its views refer to the catalog by the name of the file
        own_files.claim(database_file)
        config: dict[str, str | bool | int | float | list[str]] = {"memory_limit": Limits().effective[0]}
        if all(path.stat().st_size < _LARGE_BYTES for path in trace.paths if path.is_file()):
            config["default_block_size"] = str(_SMALL_BLOCK_BYTES)
        with duckdb.connect(database_file, config=config) as connection:
            template.copy_into(connection, database_file.stem)
            for table, file in _write_raw_tables(trace, database_file.parent).items():
                name = f"raw.{identifier(table)}"
                rows = f"FROM {read_parquet(file)}"
                connection.execute(f"DROP VIEW {name}; CREATE TABLE {name} AS {rows}")
                own_files.remove(file)
            finish_stored_model(connection)
            _show_documented_views(connection)
        outputs.move_to_target(database_file, output, force=True)


def _show_documented_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Leave only the documented views in the schema `main`: what SHOW TABLES lists.

    A view looks for others in its own schema, then in `main`, where the macros are.
    """
    stored_views = [view for view in views.list_in_creation_order() if "parameters" not in view.header]
    columns = views.list_columns(connection)
    connection.execute(f"BEGIN; CREATE SCHEMA {_VIEW_SCHEMA}")
    for view in stored_views:
        connection.execute(view.create.replace("CREATE VIEW ", f"CREATE VIEW {_VIEW_SCHEMA}.", 1))
    for view in reversed(stored_views):
        connection.execute(f"DROP VIEW main.{view.name}")
    for view in stored_views:
        if not view.is_internal and view.description:
            comments = view.write_comments(columns[view.name])
            connection.execute(f"CREATE VIEW main.{view.name} AS FROM {_VIEW_SCHEMA}.{view.name}; {comments}")
    connection.execute("COMMIT")


def _write_folder(trace: Session, output: Path) -> None:
    """Write each view of the model to a file, for any reader, and the raw tables to a subfolder, to read them back."""
    refuse_foreign_folder(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    # A folder with only some of the tables could be read as a trace, so it gets its name when it is complete.
    with cache_folder.make_work_path(output.resolve()) as work_path:
        folder = work_path.with_name("trace")
        own_files.make_subfolder(folder)
        own_files.claim(folder / own_files.MARKER)
        own_files.adopt(folder)
        own_files.make_subfolder(folder / "raw")
        _write_raw_tables(trace, folder / "raw")
        for view in views.documented_views(internal=False):
            row_filter = (
                f" WHERE name_id IN ({private.select_used_strings('raw', read_expected_schema())})"
                if view == "strings"
                else ""
            )
            own_files.claim(folder / f"{view}.parquet")
            trace.stream(Statement(f"SELECT * FROM {view}{row_filter}")).write_parquet(folder / f"{view}.parquet")
        own_files.replace_folder(folder, output.resolve())


def refuse_foreign_folder(output: Path) -> None:
    """Refuse to replace a folder that holds anything that this program did not write; an empty one holds nothing.

    Raises:
        UsageError: The folder is another's, or of a version that left no list of its files.
    """
    if output.is_dir() and any(output.iterdir()) and (unlisted := own_files.list_unlisted(output.resolve())):
        raise UsageError(
            f"{output} is not replaced: no list of nsys-insight's own files has {unlisted[0].name}",
            "name another folder with -o, or remove this one first",
        )


def _write_raw_tables(trace: Session, folder: Path) -> dict[str, Path]:
    files = {table: folder / f"{table}.parquet" for table in read_expected_schema()}
    for table, file in files.items():
        own_files.claim(file)
        trace.stream(Statement(select_exported_rows(table))).write_parquet(file)
    return files
