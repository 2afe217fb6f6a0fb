"""What a late rank's host was at, while its GPU had nothing to do and the others waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.ingest import several
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.rows import insert

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

    from nsys_insight.facts.ranks.rank import Rank

# A call or a range that held the thread for half of the time is what it was at.
_HALF = 0.5


def of_gaps(
    connection: duckdb.DuckDBPyConnection,
    part: str,
    rank: Rank,
    gaps: Sequence[tuple[int, int]],
    prepare: Callable[[str], None],
) -> tuple[str | None, str | None]:
    """Tell what the thread did that launched what ended the gaps, a call or "CPU work", and in which NVTX range."""
    values = {"process": rank.process_id, "gpu": rank.gpu_id}
    statements = {name: bind(query(f"facts/ranks/{name}"), values) for name in ("gaps", "calls", "ranges")}
    for statement in statements.values():
        prepare(statement)
    with several.inside(connection, part):
        connection.execute("CREATE OR REPLACE TABLE internal.rank_gaps (gap BIGINT, start_ns BIGINT, end_ns BIGINT)")
        rows = [{"gap": at, "start_ns": start, "end_ns": end} for at, (start, end) in enumerate(gaps)]
        insert(connection, "internal.rank_gaps", rows)
        connection.execute(statements["gaps"])
        total = connection.execute("SELECT sum(end_ns - start_ns)::BIGINT FROM internal.rank_threads").fetchall()[0][0]
        calls, ranges = (connection.execute(statements[name]).fetchall() for name in ("calls", "ranges"))
        connection.execute("DROP TABLE internal.rank_gaps; DROP TABLE internal.rank_threads")
    if not total:
        return None, None
    call = next((name for name, time_ns in calls if time_ns >= _HALF * total), None)
    place = next((name for name, time_ns in ranges if time_ns >= _HALF * total), None)
    return call or "CPU work", place
