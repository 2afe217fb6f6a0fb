"""The file that `ncu import` writes: ncu's measurements in three tables, which the model reads next to the trace."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import cache_folder, outputs
from nsys_insight.errors import TraceError, UsageError, cannot_write_error
from nsys_insight.ingest import cache_entries, database
from nsys_insight.ingest.expected_schema import read_expected_schema
from nsys_insight.ingest.files import find_neighbor
from nsys_insight.paths import expand_home
from nsys_insight.sql.quoting import identifier, literal, read_parquet

if TYPE_CHECKING:
    from collections.abc import Collection

    import duckdb

    from nsys_insight.ingest.ncu.pages import Launch
    from nsys_insight.ingest.source import Source

NCU_VARIABLE = "NSYS_INSIGHT_NCU_DATA"
SUFFIX = ".ncu.duckdb"
TABLES = ("ncu_launches", "ncu_metrics", "ncu_rules")
IMPLEMENTATIONS = ("native", "cutlass", "cute", "triton", "inductor", "pytorch", "library")

# Part of the names of cache entries: raise it when the readers read other values from the same file.
_READERS_VERSION = "2"


def read_all(files: list[Path]) -> list[Launch]:
    """Read CSV pages and reports of ncu; combine the pages of one report.

    Raises:
        TraceError: A file has no launch, or is damaged.
        ToolError: A report needs ncu, which is missing or failed.
    """
    from nsys_insight.ingest.ncu.pages import merge_launches, read_file

    launches_by_key: dict[tuple[object, ...], Launch] = {}
    for file in files:
        if is_report(file):
            from nsys_insight.ingest.ncu.tool import read_pages

            launches = read_pages(file)
        else:
            launches = read_file(file)
        if not launches:
            raise TraceError(f"{file} holds no launch: ncu profiled none", "check its output: did a kernel match?")
        merge_launches(launches_by_key, launches)
    return list(launches_by_key.values())


def is_report(file: Path) -> bool:
    """Return whether a file is ncu's own report, judged by its first bytes or its suffix."""
    from nsys_insight.ingest.ncu import report_blocks

    try:
        with file.open("rb") as stream:
            head = stream.read(len(report_blocks.MAGIC))
    except OSError:
        return False
    return head == report_blocks.MAGIC or file.suffix == ".ncu-rep"


def write(
    launches: list[Launch],
    target: Path,
    implementation: str | None = None,
    inputs: Collection[Path] = (),
    *,
    force: bool = False,
) -> Path:
    """Write launches to a DuckDB file, completely or not at all. `implementation` is the kind that the user states.

    Raises:
        UsageError: The file cannot be written, or the implementation is unknown.
    """
    _check_implementation(implementation)
    with outputs.open_output(target, inputs, force=force) as path:
        _write(launches, path, implementation)
    return target


def find_store(trace: Path, ncu_file: Path | None = None, *, use_cache: bool = True) -> Path | None:
    """Return the ncu data of a trace: the given file, that of `$NSYS_INSIGHT_NCU_DATA`, or one next to the trace.

    `decode.ncu.duckdb` belongs to `decode.nsys-rep` and `decode.sqlite` in the same folder or in the current one. The
    given file may also be a report or a CSV page of ncu. It is first imported into the cache, or without `use_cache`
    into a temporary file.

    Raises:
        TraceError: The given file cannot be read.
    """
    if ncu_file is None and os.environ.get(NCU_VARIABLE):
        ncu_file = expand_home(os.environ[NCU_VARIABLE])
    if ncu_file is not None:
        return ncu_file if is_store(ncu_file) else make_cached_store([ncu_file], use_cache=use_cache)
    name = trace.name.removesuffix("_pqtdir")
    name = name.removesuffix(Path(name).suffix) + SUFFIX
    return find_neighbor(trace, name) or find_neighbor(Path(trace.name), name)


def make_cached_store(files: list[Path], implementation: str | None = None, *, use_cache: bool = True) -> Path:
    """Return a store of files that ncu wrote, from the cache folder; write it if it does not exist."""
    try:
        keys = [cache_folder.key(file) for file in files]
        name = cache_folder.digest("ncu", _READERS_VERSION, *keys, implementation or "", repr(read_expected_schema()))
        target = cache_folder.folder(use_cache=use_cache) / f"{name}{SUFFIX}"
    except FileNotFoundError:
        missing = next((file for file in files if not file.exists()), None)
        if missing is None:
            raise
        raise TraceError(f"{missing} does not exist", "name a CSV page or a report that ncu wrote") from None
    if not (cache_entries.use(target) and is_store(target)):
        _check_implementation(implementation)
        launches = read_all(files)
        try:
            with cache_entries.make_entry(target, "ncu data", *files) as path:
                _write(launches, path, implementation)
        except OSError as error:
            raise cannot_write_error(target, error) from None
    return target


def is_store(path: Path) -> bool:
    """Return whether `write` wrote the file `path`."""
    try:
        with path.open("rb") as stream:
            return stream.read(12)[8:] == b"DUCK"
    except OSError:
        return False


def attach(connection: duckdb.DuckDBPyConnection, store: Path, source: Source) -> Source:
    """Return a trace's source with the tables of a store added.

    Raises:
        TraceError: The file is damaged, open in another process, or another version of this program wrote it.
    """
    import duckdb

    try:
        database.attach_file(connection, store, "ncu", once=True)
        columns_by_table = database.list_tables(connection, "ncu", "main")
    except duckdb.Error as error:
        raise TraceError(
            f"{store} cannot be read: {str(error).partition(chr(10))[0]}", "import it again: nsys-insight ncu import"
        ) from None
    columns = {table: columns_by_table.get(table, set()) for table in TABLES}
    if not all(columns.values()) or not database.has_tables_only(connection, "ncu"):
        raise TraceError(f"{store} is not a file that ncu import wrote", "nsys-insight ncu import FILE.ncu-rep")
    relations = {table: f"ncu.main.{identifier(table)}" for table in TABLES}
    return replace(source, relations=source.relations | relations, columns=source.columns | columns)


def _check_implementation(implementation: str | None) -> None:
    if implementation is not None and implementation not in IMPLEMENTATIONS:
        raise UsageError(f"--type cannot be {implementation!r}", f"choose one of: {', '.join(IMPLEMENTATIONS)}")


def _write(launches: list[Launch], path: Path, implementation: str | None) -> None:
    connection = database.connect()
    try:
        connection.execute(f"ATTACH {literal(str(path))} AS target")
        _create_tables(connection, launches, implementation)
        connection.execute("DETACH target")
    finally:
        connection.close()


def _create_tables(connection: duckdb.DuckDBPyConnection, launches: list[Launch], implementation: str | None) -> None:
    """Create the three tables through Parquet: to insert a hundred thousand metrics row by row takes a minute."""
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
    with cache_folder.use_temporary_folder() as folder:
        for table in TABLES:
            file = folder.claim(f"{table}.parquet")
            schema = {name: kinds[kind] for name, kind in read_expected_schema()[table].items()}
            pl.DataFrame(rows[table], schema=schema, orient="row").write_parquet(file)
            connection.execute(f"CREATE TABLE target.{identifier(table)} AS FROM {read_parquet(file)} ORDER BY launch")
