"""What is known of the ranks in each trace before any are compared: their collectives, and which rank each is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nsys_insight.facts.ranks import numbers, rank
from nsys_insight.ingest import several
from nsys_insight.paths import query
from nsys_insight.sql.rows import insert, named_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from nsys_insight.facts.ranks.numbers import Numbered
    from nsys_insight.facts.ranks.rank import Rank

    class Prepare(Protocol):
        """What creates the views that a statement names, and finds the facts that these show, in some traces."""

        def __call__(self, sql: str, among: Sequence[str]) -> None:
            """Do so in the traces of these catalogs."""


class Known(NamedTuple):
    """The ranks, when each trace began by its host's clock, which rank is which, and traces that are another's copy."""

    ranks: list[Rank]
    began: list[int | None]
    told: Numbered
    alike: list[tuple[str, str]]


def known(
    connection: duckdb.DuckDBPyConnection, parts: Sequence[str], labels: Sequence[str], prepare: Prepare
) -> Known:
    """Read the ranks of traces; a trace that holds what another one does is left out.

    Args:
        connection: Where the model is.
        parts: The catalogs in which the traces have theirs.
        labels: What the traces are called.
        prepare: Creates the views that a statement names, and finds the facts that these show.
    """
    statements = {name: query(f"facts/ranks/{name}") for name in ("kernels", "began", "numbers", "environment")}
    for statement in statements.values():
        prepare(statement, parts)
    ranks: list[Rank] = []
    began: list[int | None] = []
    by_nccl: dict[tuple[int, int], tuple[int, int]] = {}
    environments = []
    for number, part in enumerate(parts):
        with several.inside(connection, part):
            ranks += rank.of_rows(number, named_rows(connection, statements["kernels"]))
            began.append(connection.execute(statements["began"]).fetchall()[0][0])
            for said in named_rows(connection, statements["numbers"]):
                by_nccl[number, said.process_id] = said.rank, said.ranks
            environments.append(dict(connection.execute(statements["environment"]).fetchall()))
    copies = _copies(ranks)
    ranks = [one for one in ranks if one.trace not in copies]
    alike = [(labels[copy], labels[of]) for copy, of in copies.items()]
    return Known(ranks, began, numbers.numbered(ranks, labels, by_nccl, environments, set(copies)), alike)


def fill(connection: duckdb.DuckDBPyConnection, parts: Sequence[str], labels: Sequence[str], prepare: Prepare) -> None:
    """Fill `facts.rank_numbers`, in the connection's own catalog; the arguments are those of `known`."""
    ranks, _, told, _ = known(connection, parts, labels, prepare)
    rows: list[dict[str, Any]] = [
        {"trace": labels[one.trace], "process_id": one.process_id, "device_id": one.device_id, "rank": number}
        for one, number in zip(ranks, told.numbers, strict=True)
    ]
    rows += [
        {"trace": labels[trace], "process_id": None, "device_id": None, "rank": number}
        for trace, number in told.silent.items()
    ]
    insert(connection, "facts.rank_numbers", [{**row, "told_by": told.by} for row in rows])


def _copies(ranks: Sequence[Rank]) -> dict[int, int]:
    """Which traces have a rank whose collectives are, to the ns, those of a rank of an earlier trace."""
    first: dict[tuple[bytes, bytes], Rank] = {}
    found: dict[int, int] = {}
    for one in ranks:
        before = first.setdefault(one.moments, one).trace
        if before != one.trace:
            found[one.trace] = min(found.get(one.trace, before), before)
    return found
