"""The ranks of a run: the rank of each trace or process, and reports summed over ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.packs import rank_sums
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.ingest.scope import Scope
    from nsys_insight.packs.pack import Pack
    from nsys_insight.session.answer import Columns

# A row for each rank of each trace: trace, process_id, device_id, rank, and the source of the rank number.
RANKS_QUERY = "FROM _rank_numbers ORDER BY rank"


class RankNumbers(NamedTuple):
    """The ranks of the traces with a single rank, by label, and whether the traces are known to be one run."""

    by_label: dict[str, int]
    is_run: bool


def read_rank_numbers(rows: Sequence[Any], labels: Sequence[str], *, are_parts: bool) -> RankNumbers:
    """Return the ranks of several traces from the rows of `RANKS_QUERY`.

    `are_parts`: the traces are parts of one trace, so they are known to be one run. Otherwise, traces whose ranks come
    only from their order are not a run.
    """
    of_label = {label: [row.rank for row in rows if row.trace == label] for label in labels}
    by_label = {label: ranks[0] for label, ranks in of_label.items() if len(ranks) == 1}
    is_run = are_parts or all(row.source != "order" for row in rows)
    return RankNumbers(by_label, is_run and len(by_label) == len(labels))


def list_rank_scopes(rows: Sequence[Any], scope: Scope) -> list[tuple[str, Scope]]:
    """Return the label and scope of each rank of a trace: a process, or one of its GPUs if it uses several."""
    labeled_scopes = []
    for row in rows:
        has_one_device = sum(other.process_id == row.process_id for other in rows) == 1
        process = {"process": row.process_id} | ({} if has_one_device else {"device": row.device_id})
        labeled_scopes.append((f"rank {row.rank}", scope.narrowed(**process)))
    return labeled_scopes


def write_sum_query(
    pack: Pack, table: str, columns: Columns, ranks: Mapping[str, int], labels: Sequence[str]
) -> tuple[str, dict[str, str]]:
    """Return the query that sums a report's answer over its traces, and the descriptions of its columns.

    The rank of a trace with an unknown rank is its position among the traces.
    """
    sums = rank_sums.read_header(pack.ranks)
    rank_cases = " ".join(
        f"WHEN {literal(label)} THEN {ranks.get(label, position)}" for position, label in enumerate(labels)
    )
    other_columns = ", ".join(identifier(name) for name, _ in columns if name != "rank")
    answer = f"(SELECT {other_columns}, CASE trace {rank_cases} END::BIGINT AS rank FROM {table})"
    return sums.write_query(answer, dict(columns), len(labels)), sums.describe_columns(pack.columns)
