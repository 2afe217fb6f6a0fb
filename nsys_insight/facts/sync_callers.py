"""Where the CUDA calls were made that wait, allocate, free, copy or set memory, and the launches of graphs.

nsys writes a call stack for each call, and most calls are launches: of 172 million frames, a twentieth are of the other
calls. So only the stacks of the calls in question are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.paths import query

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context

# So many frames, the first ones of the trace, tell whether call stacks name any code.
_FIRST = 10_000
# Frames without a symbol in these stacks that may have one in others.
_IN_DOUBT = """
    SELECT 1
    FROM internal.chain_symbols AS c
    JOIN raw.StringIds AS s ON s.id = c.symbol
    WHERE c.unresolved <> 0 AND s.value NOT SIMILAR TO '0x[0-9a-fA-F]+|\\[.*\\]|' LIMIT 1"""
_TABLES = (
    "chosen_calls", "chosen_chains", "chain_rows", "chain_symbols", "chain_names", "chain_frames", "chain_callers",
)  # fmt: skip


def fill(context: Context) -> None:
    """Fill `facts.few_callers`, `facts.few_stacks` and `facts.few_calls`."""
    fill_for(context, "sync_callers", "few_")


def fill_for(context: Context, producer: str, prefix: str) -> None:
    """Fill the tables with a prefix of a producer; its `chosen.sql` says which calls it is about."""
    connection = context.connection
    names = ("chained", "scanned", "symbols", "named", "found")
    statements = {name: query(f"facts/sync_callers/{name}").replace("few_", prefix) for name in names}
    statements["chosen"] = query(f"facts/{producer}/chosen")
    context.prepare(*statements.values(), _IN_DOUBT)

    def is_without_doubt() -> bool:
        return connection.execute(_IN_DOUBT).fetchone() is None

    def name_any() -> bool:
        """Name the stacks whose rows are there; tell whether any has a name."""
        connection.execute(statements["named"])
        return connection.execute("FROM internal.chain_callers LIMIT 1").fetchone() is not None

    for name in ("chosen", "chained", "scanned", "symbols"):
        connection.execute(statements[name])
    is_sure = is_without_doubt()
    if is_sure and not name_any():
        # That none of these calls has a caller does not say that none of all has one.
        connection.execute(f"CREATE OR REPLACE TABLE internal.chain_rows AS FROM raw.CUDA_CALLCHAINS LIMIT {_FIRST}")
        connection.execute(statements["symbols"])
        is_sure = is_without_doubt() and name_any()
        connection.execute("TRUNCATE internal.chain_callers")
    if is_sure:
        connection.execute(statements["found"])
    else:
        of_all = query("facts/sync_callers/of_all").replace("few_", prefix)
        context.prepare(of_all)
        connection.execute(of_all)
    connection.execute("; ".join(f"DROP TABLE IF EXISTS internal.{table}" for table in _TABLES))
