"""A trace handed over: as a DuckDB file or a folder of Parquet files, which can be read back, or as a timeline."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import extents, found, fusion, gaps, gpus, idle, load, model, raw, steps
from nsys_insight.errors import UsageError
from nsys_insight.scope import WHOLE_TRACE, describe
from nsys_insight.sqltext import identifier, literal
from nsys_insight.statements import Statement

if TYPE_CHECKING:
    from nsys_insight.trace import Trace

_BY_SUFFIX = {
    ".duckdb": "duckdb",
    ".parquet": "parquet",
    ".pftrace": "perfetto",
    ".perfetto-trace": "perfetto",
}
KINDS = ("duckdb", "parquet", "perfetto")


def kind_of(output: Path, wanted: str | None) -> str:
    """Tell what to write: as asked for, else by the suffix; a name without a suffix is a folder of Parquet files.

    Raises:
        UsageError: There is no such kind, or it does not follow from the suffix.
    """
    kind = wanted or _BY_SUFFIX.get(output.suffix, "" if output.suffix else "parquet")
    if kind not in KINDS:
        what = f"cannot convert to {wanted!r}" if wanted else f"the suffix of {output} says nothing"
        raise UsageError(what, f"add --to {'|'.join(KINDS)}, or end the name in {' '.join(_BY_SUFFIX)}")
    return kind


def convert(trace: Trace, output: Path, kind: str, *, force: bool = False) -> None:
    """Write a trace in another form; a timeline, as far as it is in scope.

    Raises:
        UsageError: Something of the name exists already, or cannot be written.
    """
    if len(trace.paths) > 1:
        raise UsageError("one trace is converted at a time", "name one of them")
    if kind != "perfetto" and trace.facts()["scope"]:
        raise UsageError(
            "a part of a trace cannot be read back as a trace", "leave the scope out, or add --to perfetto"
        )
    if output.exists() and not force:
        raise UsageError(f"{output} exists already", "choose another name, or add --force")
    try:
        if kind == "perfetto":
            from nsys_insight.perfetto import write_timeline

            with output.open("wb") as stream:
                write_timeline(trace, stream)
        elif kind == "duckdb":
            write_database(trace, output)
        else:
            _write_folder(trace, output)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror or error}", "name another with -o") from None


def write_database(trace: Trace, output: Path) -> None:
    """Write the raw tables as tables, and over them the views of the model, with their comments."""
    import duckdb

    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".nsys-insight-") as folder:
        built = Path(folder) / "trace.duckdb"
        with duckdb.connect(built, config={"memory_limit": load.DEFAULT_MEMORY}) as connection:
            connection.execute("CREATE SCHEMA raw")
            for table, file in _raw_tables(trace, Path(folder)).items():
                connection.execute(f"CREATE TABLE raw.{identifier(table)} AS FROM read_parquet({literal(str(file))})")
                file.unlink()
            connection.execute(f"CREATE VIEW raw.wall AS {extents.select({})}")
            connection.execute("CREATE SCHEMA whole")
            for table in map(identifier, raw.WHOLE):
                connection.execute(f"CREATE VIEW whole.{table} AS FROM raw.{table}")
            model.create_macros(connection, lasting=True)
            gpus.create_macro(connection)
            gpus.create_line(connection, {})
            describe(connection)
            found.create_tables(connection)
            model.create_views(connection, list(model.definitions().values()), comments=True)
            idle.find(connection)
            gaps.find(connection, raw.Source({}, {}), WHOLE_TRACE, None, lambda _: None)
            steps.find(connection, steps.AUTO, lambda _: None)
            fusion.find(connection, lambda _: None)
        built.replace(output)


def _write_folder(trace: Trace, output: Path) -> None:
    """Write each view of the model to a file, for any reader, and the raw tables to a folder below, to be read back."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "raw").mkdir(exist_ok=True)
    _raw_tables(trace, output / "raw")
    for view in model.views():
        trace.stream(Statement(f"SELECT * FROM {view}")).write_parquet(output / f"{view}.parquet")


def _raw_tables(trace: Trace, folder: Path) -> dict[str, Path]:
    files = {table: folder / f"{table}.parquet" for table in raw.contract()}
    for table, file in files.items():
        trace.stream(Statement(f"SELECT * FROM raw.{identifier(table)}")).write_parquet(file)
    return files
