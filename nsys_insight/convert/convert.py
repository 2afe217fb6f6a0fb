"""Convert a trace to a DuckDB file or a folder of Parquet files, which can be read back, or to a timeline."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import outputs, progress
from nsys_insight.errors import UsageError, cannot_write
from nsys_insight.ingest import cache_folder, private
from nsys_insight.ingest.contract import contract
from nsys_insight.ingest.limits import Limits
from nsys_insight.model import template, views
from nsys_insight.session.handed_over import rows_handed_over
from nsys_insight.session.model import finish_lasting
from nsys_insight.sql.quoting import identifier, literal
from nsys_insight.sql.statements import Statement

if TYPE_CHECKING:
    from nsys_insight.session.session import Session

_BY_SUFFIX = {
    ".duckdb": "duckdb",
    ".parquet": "parquet",
    ".pftrace": "perfetto",
    ".perfetto-trace": "perfetto",
}
KINDS = ("duckdb", "parquet", "perfetto")


def output_kind(output: Path, wanted: str | None) -> str:
    """Tell what to write: as asked for, else by the suffix; a name without a suffix is a folder of Parquet files.

    Raises:
        UsageError: There is no such kind, or it does not follow from the suffix.
    """
    kind = wanted or _BY_SUFFIX.get(output.suffix, "" if output.suffix else "parquet")
    if kind not in KINDS:
        what = f"cannot convert to {wanted!r}" if wanted else f"the suffix of {output} is not a known format"
        raise UsageError(what, f"add --as {'|'.join(KINDS)}, or end the name in {' '.join(_BY_SUFFIX)}")
    return kind


def convert(trace: Session, output: Path, kind: str, *, force: bool = False) -> None:
    """Write a trace in another form; a timeline, as far as it is in scope.

    Raises:
        UsageError: Something of the name exists already, or cannot be written.
    """
    trace.refuse_several("convert takes one trace at a time", "name one of them")
    if kind != "perfetto" and trace.about()["scope"]:
        raise UsageError("a part of a trace cannot be read back as a trace", "omit the scope, or add --as perfetto")
    outputs.check(output, [*trace.paths, *([trace.ncu] if trace.ncu else [])])
    if output.exists() and not force:
        raise UsageError(f"{output} exists already", "choose another name, or add --force")
    try:
        with progress.at(f"writing {output.name}"):
            _write(trace, output, kind)
    except OSError as error:
        raise cannot_write(output, error) from None


def _write(trace: Session, output: Path, kind: str) -> None:
    if kind == "perfetto":
        from nsys_insight.convert.perfetto import write_timeline

        with outputs.whole(output, trace.paths, force=True) as made, made.open("wb") as stream:
            write_timeline(trace, stream)
    elif kind == "duckdb":
        write_database(trace, output)
    else:
        _write_folder(trace, output)


def write_database(trace: Session, output: Path) -> None:
    """Write the raw tables as tables, and over them the views of the model, with their comments."""
    import duckdb

    with cache_folder.working(output.resolve()) as path:
        built = path.with_name("trace.duckdb")  # the name of the file is the name of the catalog in its views
        with duckdb.connect(built, config={"memory_limit": Limits().settled[0]}) as connection:
            template.copy_into(connection, built.stem)
            for table, file in _raw_tables(trace, built.parent).items():
                name = f"raw.{identifier(table)}"
                rows = f"FROM read_parquet({literal(str(file))})"
                connection.execute(f"DROP VIEW {name}; CREATE TABLE {name} AS {rows}")
                file.unlink()
            finish_lasting(connection)
        outputs.place(built, output, force=True)


def _write_folder(trace: Session, output: Path) -> None:
    """Write each view of the model to a file, for any reader, and the raw tables to a folder below, to be read back."""
    output.parent.mkdir(parents=True, exist_ok=True)
    # A folder with some of the tables could be read as a trace, so it is renamed when it is complete.
    with cache_folder.working(output.resolve()) as path:
        built = path.with_name("trace")
        (built / "raw").mkdir(parents=True)
        _raw_tables(trace, built / "raw")
        for view in views.documented(internal=False):
            used = f" WHERE name_id IN ({private.strings_used('raw', contract())})" if view == "strings" else ""
            trace.stream(Statement(f"SELECT * FROM {view}{used}")).write_parquet(built / f"{view}.parquet")
        if output.exists():
            shutil.copytree(built, output, dirs_exist_ok=True)
        else:
            built.replace(output)


def _raw_tables(trace: Session, folder: Path) -> dict[str, Path]:
    files = {table: folder / f"{table}.parquet" for table in contract()}
    for table, file in files.items():
        trace.stream(Statement(rows_handed_over(table))).write_parquet(file)
    return files
