"""Where some CUDA calls were made, without a look at the call chains of all others.

nsys writes a chain for each call, and most calls are launches: of 172 million frames, a twentieth are of the calls that
wait or handle memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.paths import query

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

# So many frames, the first ones of the trace, tell whether chains name any code.
_FIRST = 10_000
# A frame whose symbol is in doubt: where it is without a symbol in these chains, it may have one in others.
_IN_DOUBT = """
    SELECT 1
    FROM internal.chain_symbols AS c
    JOIN raw.StringIds AS s ON s.id = c.symbol
    WHERE c.unresolved <> 0 AND s.value NOT SIMILAR TO '0x[0-9a-fA-F]+|\\[.*\\]|' LIMIT 1"""
_TABLES = (
    "chosen_calls", "chosen_chains", "chain_rows", "chain_symbols", "chain_names", "chain_frames", "chain_callers",
)  # fmt: skip


def fill(connection: duckdb.DuckDBPyConnection, kind: str, prepare: Callable[[str], None]) -> None:
    """Fill the tables of a kind of facts, which has a statement for the calls that it is about.

    Args:
        connection: Where the model is.
        kind: `few_callers` or `gap_callers`.
        prepare: Creates the views that a statement names.
    """
    chosen, chained = query(f"facts/{kind}/chosen"), query("facts/few_callers/chained")
    scanned, symbols, named = (query(f"facts/few_callers/{name}") for name in ("scanned", "symbols", "named"))
    found, of_all = (query(f"facts/few_callers/{name}").replace("few_", kind[:4]) for name in ("found", "of_all"))
    for statement in (chosen, chained, scanned, symbols, named, found, _IN_DOUBT):
        prepare(statement)

    def is_without_doubt() -> bool:
        return connection.execute(_IN_DOUBT).fetchone() is None

    def name_any() -> bool:
        """Name the chains whose rows are there; tell whether any has a name."""
        connection.execute(named)
        return connection.execute("FROM internal.chain_callers LIMIT 1").fetchone() is not None

    connection.execute(chosen)
    connection.execute(chained)
    connection.execute(scanned)
    connection.execute(symbols)
    is_sure = is_without_doubt()
    if is_sure and not name_any():
        # That none of these calls has a caller does not say that none of all has one.
        connection.execute(f"CREATE OR REPLACE TABLE internal.chain_rows AS FROM raw.CUDA_CALLCHAINS LIMIT {_FIRST}")
        connection.execute(symbols)
        is_sure = is_without_doubt() and name_any()
        connection.execute("TRUNCATE internal.chain_callers")
    if not is_sure:
        prepare(of_all)
    connection.execute(found if is_sure else of_all)
    connection.execute("; ".join(f"DROP TABLE IF EXISTS internal.{table}" for table in _TABLES))
