"""Several traces in one session: each has its model in a catalog of its own, and a view of all unites them.

Ids of strings, calls and processes repeat from trace to trace. So what belongs together is joined within a trace, by
the views as they are, and only then put under each other, with a column `trace` in front.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nsys_insight import cache, model
from nsys_insight.sqltext import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import duckdb

    from nsys_insight.raw import Source

_BUILDERS = 4
_FEW = 8


def catalogs(count: int) -> list[str]:
    """The names of the catalogs for so many traces; that of a single one is the connection's own, ""."""
    return [""] if count == 1 else [f"model_{number}" for number in range(count)]


@contextmanager
def inside(connection: duckdb.DuckDBPyConnection, catalog: str) -> Iterator[None]:
    """Create what is created in the block in `catalog`, which is made when it is first asked for."""
    if not catalog:
        yield
        return
    connection.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {catalog}; USE {catalog}")
    try:
        yield
    finally:
        connection.execute("USE memory")


def unite(  # noqa: PLR0913, PLR0917 - what to unite of what
    connection: duckdb.DuckDBPyConnection,
    mentioned_in: str,
    parts: Sequence[str],
    labels: Sequence[str],
    sources: Sequence[Source],
    loaded: dict[str, set[str]],
) -> None:
    """Create the views that a query names over those of all parts.

    Of more than a few parts, a plan over all would take more memory than their rows: then the rows are loaded, part by
    part, with the columns that the query names. `loaded` keeps which those are.
    """
    wanted = model.words(mentioned_in)
    for name in [*model.views(), "scope"]:
        if name in wanted and len(parts) <= _FEW:
            _create(connection, name, list(zip(parts, labels, strict=True)))
        elif name in wanted:
            _load(connection, name, list(zip(parts, labels, strict=True)), mentioned_in, loaded)
    if "raw" not in wanted:
        return
    connection.execute("CREATE SCHEMA IF NOT EXISTS raw")
    for table in {table for source in sources for table in source.columns if table.lower() in wanted}:
        having = zip(parts, labels, sources, strict=True)
        _create(
            connection,
            f"raw.{identifier(table)}",
            [(part, label) for part, label, source in having if table in source.columns],
        )


def build(files: Sequence[Path], memory: str | None, *, in_place: bool = True) -> dict[Path, Path]:
    """Build the DuckDB files of exports, several at once."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_BUILDERS) as pool:
        built = pool.map(lambda file: cache.build(file, memory, in_place=in_place), files)
        return dict(zip(files, built, strict=True))


def labels_of(paths: Sequence[Path]) -> list[str]:
    """Name traces by their files without the suffix, with as many folders before it as it takes to tell them apart."""
    for depth in range(1, max((len(path.parts) for path in paths), default=0) + 1):
        labels = ["/".join([*path.parts[-depth:-1], path.stem]) for path in paths]
        if len(set(labels)) == len(labels):
            return labels
    return [f"{path.stem}#{number}" for number, path in enumerate(paths)]


def _create(connection: duckdb.DuckDBPyConnection, name: str, parts: Sequence[tuple[str, str]]) -> None:
    each = (f"SELECT {literal(label)} AS trace, * FROM {part}.{_qualified(name)}" for part, label in parts)
    connection.execute(f"CREATE VIEW IF NOT EXISTS {name} AS " + " UNION ALL BY NAME ".join(each))


def _load(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    parts: Sequence[tuple[str, str]],
    query: str,
    loaded: dict[str, set[str]],
) -> None:
    """Load of a view the columns that a query may mean: those it names, or all where it may mean all."""
    columns = [column for column, *_ in connection.execute(f"DESCRIBE {parts[0][0]}.main.{name}").fetchall()]
    words = model.words(query)
    bare = re.sub(r"count\s*\(\s*\*\s*\)", "", query, flags=re.IGNORECASE)
    chosen = re.match(r"\s*(SELECT|WITH|CREATE)\b", bare, re.IGNORECASE)
    every = not chosen or "*" in bare or words & {"natural", "columns"}
    needed = {column for column in columns if every or column in words}
    if name in loaded and loaded[name] >= needed:
        return
    loaded[name] = needed | loaded.get(name, set())
    select = ", ".join(["trace", *(identifier(column) for column in columns if column in loaded[name])])
    connection.execute("ATTACH IF NOT EXISTS ':memory:' AS united (COMPRESS)")
    for number, (part, label) in enumerate(parts):
        into = f"INSERT INTO united.main.{name}" if number else f"CREATE OR REPLACE TABLE united.main.{name} AS"
        rows = f"SELECT {literal(label)} AS trace, * FROM {part}.main.{name}"
        connection.execute(f"{into} SELECT {select} FROM ({rows})")
    connection.execute(f"CREATE OR REPLACE VIEW {name} AS FROM united.main.{name}")


def _qualified(name: str) -> str:
    return name if "." in name else f"main.{name}"
