"""The file that `ncu import` writes: what ncu measured, as three tables that the model reads next to the trace."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import outputs
from nsys_insight.errors import TraceError, UsageError, cannot_write
from nsys_insight.ingest import cache_entries, cache_folder, database
from nsys_insight.ingest.contract import contract
from nsys_insight.ingest.ncu.pages import Launch, merge, read
from nsys_insight.paths import expanded
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Collection

    import duckdb

    from nsys_insight.ingest.source import Source

NCU_VARIABLE = "NSYS_INSIGHT_NCU_DATA"
SUFFIX = ".ncu.duckdb"
TABLES = ("ncu_launches", "ncu_metrics", "ncu_rules")
IMPLEMENTATIONS = ("native", "cutlass", "cute", "triton", "inductor", "pytorch", "library")

_REPORT_MAGIC = b"NVR\0"


def read_all(files: list[Path]) -> list[Launch]:
    """Read CSV pages and reports of ncu; the pages of one report become one.

    Raises:
        TraceError: A file holds no launch.
        ToolError: A report needs ncu, which is missing or failed.
    """
    found: dict[tuple[object, ...], Launch] = {}
    for file in files:
        if is_report(file):
            from nsys_insight.ingest.ncu.tool import pages

            launches = pages(file)
        else:
            launches = read(file)
        if not launches:
            raise TraceError(f"{file} holds no launch: ncu profiled none", "check its output: did a kernel match?")
        merge(found, launches)
    return list(found.values())


def is_report(file: Path) -> bool:
    """Tell whether a file is ncu's own report, by how it begins or what it is called."""
    try:
        with file.open("rb") as stream:
            head = stream.read(len(_REPORT_MAGIC))
    except OSError:
        return False
    return head == _REPORT_MAGIC or file.suffix == ".ncu-rep"


def write(
    launches: list[Launch],
    target: Path,
    implementation: str | None = None,
    inputs: Collection[Path] = (),
    *,
    force: bool = False,
) -> Path:
    """Write launches to a DuckDB file, whole or not at all; `implementation` is what the user knows better.

    Raises:
        UsageError: The file cannot be written, or the implementation is none.
    """
    _check(implementation)
    with outputs.whole(target, inputs, force=force) as path:
        path.unlink()  # DuckDB makes its files itself
        _write(launches, path, implementation)
    return target


def for_trace(trace: Path, given: Path | None = None, *, lasting: bool = True) -> Path | None:
    """Return the ncu data of a trace: the given file, that of `$NSYS_INSIGHT_NCU_DATA`, or one next to the trace.

    `decode.ncu.duckdb` belongs to `decode.nsys-rep` and `decode.sqlite` in the same folder or in the current one. The
    given file may also be a report or a CSV page of ncu: it is read into the cache first, or without `lasting` into a
    temporary file.

    Raises:
        TraceError: What is given cannot be read.
    """
    if given is None and os.environ.get(NCU_VARIABLE):
        given = expanded(os.environ[NCU_VARIABLE])
    if given is not None:
        return given if is_store(given) else cached([given], lasting=lasting)
    name = trace.name.removesuffix("_pqtdir")
    for folder in (trace.parent, Path()):
        path = folder / (name.removesuffix(Path(name).suffix) + SUFFIX)
        if path.is_file():
            return path
    return None


def cached(files: list[Path], implementation: str | None = None, *, lasting: bool = True) -> Path:
    """Return a store of files that ncu wrote, from the cache folder; it is made there if it does not exist."""
    try:
        keys = [cache_folder.key(file) for file in files]
        name = cache_folder.digest("ncu", *keys, implementation or "", repr(contract()))
        target = cache_folder.folder(lasting=lasting) / f"{name}{SUFFIX}"
    except FileNotFoundError:
        missing = next((file for file in files if not file.exists()), None)
        if missing is None:
            raise
        raise TraceError(f"{missing} does not exist", "name a CSV page or a report that ncu wrote") from None
    if not (cache_entries.use(target) and is_store(target)):
        _check(implementation)
        launches = read_all(files)
        try:
            with cache_entries.making(target, "ncu data", *files) as path:
                _write(launches, path, implementation)
        except OSError as error:
            raise cannot_write(target, error) from None
    return target


def is_store(path: Path) -> bool:
    """Tell whether `path` is a file that `write` made."""
    try:
        with path.open("rb") as stream:
            return stream.read(12)[8:] == b"DUCK"
    except OSError:
        return False


def attach(connection: duckdb.DuckDBPyConnection, store: Path, source: Source) -> Source:
    """Return a trace's source with the tables of a store added.

    Raises:
        TraceError: The file is damaged, or another version of this program wrote it.
    """
    import duckdb

    try:
        connection.execute(f"ATTACH IF NOT EXISTS {literal(str(store.absolute()))} AS ncu (TYPE duckdb, READ_ONLY)")
        found = database.tables(connection, "ncu", "main")
    except duckdb.Error as error:
        raise TraceError(
            f"{store} cannot be read: {str(error).partition(chr(10))[0]}", "import it again: nsys-insight ncu import"
        ) from None
    columns = {table: found.get(table, set()) for table in TABLES}
    if not all(columns.values()) or not database.has_tables_only(connection, "ncu"):
        raise TraceError(f"{store} is not a file that ncu import wrote", "nsys-insight ncu import FILE.ncu-rep")
    relations = {table: f"ncu.main.{identifier(table)}" for table in TABLES}
    return replace(source, relations=source.relations | relations, columns=source.columns | columns)


def _check(implementation: str | None) -> None:
    if implementation is not None and implementation not in IMPLEMENTATIONS:
        raise UsageError(f"--type cannot be {implementation!r}", f"choose one of: {', '.join(IMPLEMENTATIONS)}")


def _write(launches: list[Launch], path: Path, implementation: str | None) -> None:
    connection = database.connect()
    try:
        connection.execute(f"ATTACH {literal(str(path))} AS built")
        _create_tables(connection, launches, implementation)
        connection.execute("DETACH built")
    finally:
        connection.close()


def _create_tables(connection: duckdb.DuckDBPyConnection, launches: list[Launch], implementation: str | None) -> None:
    """Create the three tables through Parquet: inserting a hundred thousand metrics row by row takes a minute."""
    import tempfile

    import polars as pl

    rows: dict[str, list[tuple[object, ...]]] = {
        "ncu_launches": [
            (
                number, launch.report, launch.ncu_id, launch.process_id, launch.process_name, launch.kernel,
                launch.context_id, launch.stream_id, launch.device_id, launch.compute_capability,
                *launch.grid, *launch.block, implementation,
            )
            for number, launch in enumerate(launches)
        ],
        "ncu_metrics": [
            (number, name, *metric) for number, launch in enumerate(launches) for name, metric in launch.metrics.items()
        ],
        "ncu_rules": [(number, *rule) for number, launch in enumerate(launches) for rule in launch.rules],
    }  # fmt: skip
    kinds = {"BIGINT": pl.Int64, "DOUBLE": pl.Float64, "VARCHAR": pl.String}
    with tempfile.TemporaryDirectory(dir=cache_folder.temporary()) as folder:
        for table in TABLES:
            file = Path(folder) / f"{table}.parquet"
            schema = {name: kinds[kind] for name, kind in contract()[table].items()}
            pl.DataFrame(rows[table], schema=schema, orient="row").write_parquet(file)
            connection.execute(
                f"CREATE TABLE built.{identifier(table)} AS FROM read_parquet({literal(str(file))}) ORDER BY launch"
            )
