"""Which ranks are on one host, as far as traces tell: those that list a GPU in common; and which GPU each has."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.ingest import several
from nsys_insight.paths import query
from nsys_insight.sql.rows import named_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from nsys_insight.facts.ranks.rank import Rank
    from nsys_insight.facts.ranks.read import Prepare


class Place(NamedTuple):
    """The number of a rank's host and the name of its GPU; None where the trace does not say."""

    host: int | None
    gpu: str | None


def places(
    connection: duckdb.DuckDBPyConnection, parts: Sequence[str], ranks: Sequence[Rank], prepare: Prepare
) -> list[Place]:
    """Tell where each rank is. Its arguments are those of `read.known`."""
    statement = query("facts/ranks/gpus")
    prepare(statement, parts)
    hosts: list[set[str]] = []
    names: list[dict[int, str]] = []
    for part in parts:
        with several.inside(connection, part):
            rows = named_rows(connection, statement)
        names.append({row.gpu_id: row.name for row in rows})
        hosts.append({row.uuid for row in rows if row.uuid})
    number = _numbered(hosts) if len(parts) > 1 else [0]
    return [Place(number[one.trace], names[one.trace].get(one.gpu_id)) for one in ranks]


def _numbered(hosts: Sequence[set[str]]) -> list[int | None]:
    """Number the hosts by the GPUs that traces list: sets that have one in common, or are linked by others, are one."""
    apart: list[set[str]] = []
    for gpus in hosts:
        linked = [one for one in apart if one & gpus]
        apart = [one for one in apart if not one & gpus] + ([gpus.union(*linked)] if gpus else [])
    of = {gpu: number for number, gpus in enumerate(apart) for gpu in gpus}
    return [of[min(gpus)] if gpus else None for gpus in hosts]
