"""The ranks of a run: which trace or process is which rank, and reports summed over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.packs import added
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.ingest.scope import Scope
    from nsys_insight.packs.pack import Pack
    from nsys_insight.session.answer import Columns

# A row for each rank of each trace: trace, process_id, device_id, rank, and what tells the rank.
RANKS_QUERY = "FROM _rank_numbers ORDER BY rank"


class RankNumbers(NamedTuple):
    """The ranks of traces that are one rank each, by label; and whether they are known to be all ranks of one run."""

    by_label: dict[str, int]
    is_run: bool


def rank_numbers(rows: Sequence[Any], labels: Sequence[str], *, is_known: bool) -> RankNumbers:
    """Return the ranks of several traces from the rows of `RANKS_QUERY`.

    With `is_known` the traces are parts of one trace, whose ranks are known to belong together; otherwise ranks
    that are only the order of the traces do not make a run.
    """
    of_label = {label: [row.rank for row in rows if row.trace == label] for label in labels}
    by_label = {label: ranks[0] for label, ranks in of_label.items() if len(ranks) == 1}
    is_told = is_known or all(row.told_by != "order" for row in rows)
    return RankNumbers(by_label, is_told and len(by_label) == len(labels))


def rank_parts(rows: Sequence[Any], scope: Scope) -> list[tuple[str, Scope]]:
    """Return the label and scope of each rank in one trace: a process, or one of its GPUs if it uses several."""
    parts = []
    for row in rows:
        is_alone = sum(other.process_id == row.process_id for other in rows) == 1
        process = {"process": row.process_id} | ({} if is_alone else {"device": row.device_id})
        parts.append((f"rank {row.rank}", scope.narrowed(**process)))
    return parts


def sum_over_ranks(
    pack: Pack, table: str, columns: Columns, ranks: Mapping[str, int], labels: Sequence[str]
) -> tuple[str, dict[str, str]]:
    """Return the query that sums a report's answer over its traces, and what its columns mean.

    A trace whose rank is not known takes its position among the traces.
    """
    how = added.of_header(pack.ranks)
    numbered = " ".join(
        f"WHEN {literal(label)} THEN {ranks.get(label, position)}" for position, label in enumerate(labels)
    )
    kept = ", ".join(identifier(name) for name, _ in columns if name != "rank")
    answer = f"(SELECT {kept}, CASE trace {numbered} END::BIGINT AS rank FROM {table})"
    return how.query(answer, dict(columns), len(labels)), how.columns(pack.columns)
