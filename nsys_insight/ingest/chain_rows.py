"""The frames of some call chains, looked up among those of all.

nsys writes a chain for each call: its frames as neighbouring rows, the innermost first, and the chains by their ids.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from nsys_insight.ingest import row_search
from nsys_insight.ingest.sqlite_file import opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.row_search import Rows, Spans
    from nsys_insight.ingest.source import Source

_TABLE = "CUDA_CALLCHAINS"
_TYPES = dict.fromkeys(("id", "symbol", "module", "unresolved", "stackDepth"), "BIGINT")
# To read fewer rows takes less than to look some up.
BIG = 200_000
# If more than one chain in so many is wanted, reading all takes less.
_FEWEST = 4
# A chain behind another by no more than this is read with all between them.
_NEAR = 3
# So many threads look for places, each for those of so many runs at a time.
_THREADS, _AT_ONCE = 8, 2_500


def look_up(connection: duckdb.DuckDBPyConnection, source: Source, wanted: str) -> bool:
    """Put the rows of the chains whose ids a query gives into `internal.chain_rows`, with those of a few others.

    Tells whether it did: not where the table is small or most of it is wanted, where rows are not in a SQLite file, or
    not in the order in which nsys writes them, or where a chain is not whole.
    """
    export, present = source.export, source.columns.get(_TABLE, set())
    if export is None or _TABLE not in export.tables or not present >= _TYPES.keys() - {"unresolved"}:
        return False
    with opened(export.file) as database:
        rows = row_search.Rows(database, _TABLE, "id")
        if len(rows.numbers) < BIG or not rows.are_in_order:
            return False
        # Chains from Python have ids below zero.
        asked = connection.execute(f"FROM ({wanted}) AS w(id) WHERE id >= 0 ORDER BY id")
        ids = [number for (number,) in asked.fetchall()]
        first, last = rows.edges
        if not ids or first < 0 or last < ids[-1] or len(ids) * _FEWEST > last - first + 1:
            return False
        spans = _spans(export.file, rows, list(_runs(ids)))
        types = {name: kind for name, kind in _TYPES.items() if name in present}
        try:
            found = row_search.keep(connection, export.catalog, _TABLE, types, spans)
        except _UnknownPlacesError:
            return False
    connection.execute(f"DROP TABLE IF EXISTS internal.chain_rows; ALTER TABLE {found} RENAME TO chain_rows")
    for name in _TYPES.keys() - present:
        connection.execute(f"ALTER TABLE internal.chain_rows ADD COLUMN {name} BIGINT")
    ((whole,),) = connection.execute(
        f"""SELECT count(*)
            FROM (
                SELECT id FROM internal.chain_rows GROUP BY id
                HAVING min(stackDepth) = 0 AND max(stackDepth) = count(*) - 1
                    AND 2 * sum(stackDepth) = count(*) * (count(*) - 1)
            )
            SEMI JOIN ({wanted}) AS w(id) USING (id)"""
    ).fetchall()
    return bool(whole == len(ids))


class _UnknownPlacesError(Exception):
    """The places of some rows could not be found."""


def _spans(file: Path, rows: Rows, runs: Sequence[tuple[int, int]]) -> Iterator[Spans]:
    """The rows of runs of ids, part by part.

    Most of the time goes by with waiting for pages of the file: several threads ask for more of them at once.

    Raises:
        _UnknownPlacesError: The places of these rows could not be found.
    """

    def of(some: Sequence[tuple[int, int]]) -> Spans:
        with opened(file) as database:
            mine = rows.over(database)
            places = mine.places([first for first, _ in some])
            if places is None:
                raise _UnknownPlacesError
            behind = mine.behind(zip(places, (last for _, last in some), strict=True))
        return [(first, after - 1) for first, after in zip(places, behind, strict=True)]

    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(of, (runs[first : first + _AT_ONCE] for first in range(0, len(runs), _AT_ONCE)))


def _runs(ids: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ids in rising order as spans, each of ids that are near to each other."""
    first = last = ids[0]
    for number in ids[1:]:
        if number > last + _NEAR:
            yield first, last
            first = number
        last = number
    yield first, last
