"""The frames of some call chains, looked up among those of all.

nsys writes a chain for each call: its frames as neighbouring rows, the innermost first, and the chains by their ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.ingest.constants import Copied
from nsys_insight.ingest.page_search import Search
from nsys_insight.ingest.row_search import row_numbers
from nsys_insight.ingest.sqlite_cells import NotPlainError
from nsys_insight.ingest.sqlite_file import opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import duckdb

    from nsys_insight.ingest.source import Source

_TABLE, _ROWS = "CUDA_CALLCHAINS", "internal.chain_rows"
_COLUMNS = ("id", "symbol", "module", "unresolved", "stackDepth")
# To read fewer rows takes less than to look some up.
BIG = 200_000
# If more than one chain in so many is wanted, reading all takes less.
_FEWEST = 4
# A chain behind another by no more than this is read with all between them.
_NEAR = 3


def look_up(connection: duckdb.DuckDBPyConnection, source: Source, wanted: str) -> bool:
    """Put the rows of the chains whose ids a query gives into `internal.chain_rows`, with those of a few others.

    Tells whether it did: not where the table is small or most of it is wanted, where rows are not in a SQLite file, or
    not in the order in which nsys writes them, or where a chain is not whole.
    """
    export, present = source.export, source.columns.get(_TABLE, set())
    if export is None or _TABLE not in export.tables or not present >= {*_COLUMNS} - {"unresolved"}:
        return False
    with opened(export.file) as database:
        if len(row_numbers(database, _TABLE)) < BIG:
            return False
    # Chains from Python have ids below zero.
    asked = connection.execute(f"FROM ({wanted}) AS w(id) WHERE id >= 0 ORDER BY id")
    ids = [number for (number,) in asked.fetchall()]
    columns = [name for name in _COLUMNS if name in present]
    connection.execute(f"DROP TABLE IF EXISTS {_ROWS}")
    copied = Copied(connection, _ROWS, columns, may_note=False)
    try:
        chains = Search(export.file, _TABLE, columns, "id")
        first, last = chains.edges
        if not ids or first < 0 or last < ids[-1] or len(ids) * _FEWEST > last - first + 1:
            return False
        for batch in chains.batches(list(_runs(ids))):
            copied.add(batch)
    except NotPlainError:
        return False
    copied.end()
    for name in {*_COLUMNS} - present:
        connection.execute(f"ALTER TABLE {_ROWS} ADD COLUMN {name} BIGINT")
    ((whole,),) = connection.execute(
        f"""SELECT count(*)
            FROM (
                SELECT id FROM {_ROWS} GROUP BY id
                HAVING min(stackDepth) = 0 AND max(stackDepth) = count(*) - 1
                    AND 2 * sum(stackDepth) = count(*) * (count(*) - 1)
            )
            SEMI JOIN ({wanted}) AS w(id) USING (id)"""
    ).fetchall()
    return bool(whole == len(ids))


def _runs(ids: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ids in rising order as spans, each of ids that are near to each other."""
    first = last = ids[0]
    for number in ids[1:]:
        if number > last + _NEAR:
            yield first, last
            first = number
        last = number
    yield first, last
