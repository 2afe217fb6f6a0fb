"""The call sites of CUDA calls that wait, allocate, free, copy or set memory, and of graph launches.

nsys writes a call stack for each call, and most calls are launches: of 172 million frames, a twentieth belong to the
other calls. So only the stacks of these calls are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.paths import read_query

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context

# Number of frames, from the start of the trace, that show whether its call stacks name any code.
_PROBED_FRAMES = 10_000
# Frames that have no symbol in these stacks, but may have one in others.
_UNCERTAIN_FRAMES = """
    SELECT 1
    FROM internal.chain_symbols AS c
    JOIN raw.StringIds AS s ON s.id = c.symbol
    WHERE c.unresolved <> 0 AND s.value NOT SIMILAR TO '0x[0-9a-fA-F]+|\\[.*\\]|' LIMIT 1"""
_TABLES = (
    "chosen_calls", "chosen_chains", "chain_rows", "chain_symbols", "chain_names", "chain_frames", "chain_callers",
)  # fmt: skip


def fill(context: Context) -> None:
    """Fill `facts.sync_callers`, `facts.sync_stacks` and `facts.sync_calls`."""
    fill_tables(context, "sync_callers", "sync_")


def fill_tables(context: Context, producer: str, prefix: str) -> None:
    """Fill the tables of a producer, whose names begin with `prefix`; its `select_calls.sql` selects the calls."""
    connection = context.connection
    names = ("select_chains", "read_rows", "list_symbols", "name_stacks", "write", "count_calls")

    def read_statement(name: str) -> str:
        return read_query(f"facts/sync_callers/{name}").replace("facts.sync_", f"facts.{prefix}")

    statements = {name: read_statement(name) for name in names}
    statements["select_calls"] = read_query(f"facts/{producer}/select_calls")
    context.prepare(*statements.values(), _UNCERTAIN_FRAMES)

    def has_certain_symbols() -> bool:
        return not connection.execute(_UNCERTAIN_FRAMES).fetchall()

    def name_stacks() -> bool:
        """Name the stacks in `internal.chain_rows`. Return whether any of them has a name."""
        connection.execute(statements["name_stacks"])
        return bool(connection.execute("FROM internal.chain_callers LIMIT 1").fetchall())

    for name in ("select_calls", "select_chains", "read_rows", "list_symbols"):
        connection.execute(statements[name])
    is_certain = has_certain_symbols()
    if is_certain and not name_stacks():
        # None of these calls has a named caller. Others may have one: probe the first frames of the trace.
        connection.execute(
            f"CREATE OR REPLACE TABLE internal.chain_rows AS FROM raw.CUDA_CALLCHAINS LIMIT {_PROBED_FRAMES}"
        )
        connection.execute(statements["list_symbols"])
        is_certain = has_certain_symbols() and name_stacks()
        connection.execute("TRUNCATE internal.chain_callers")
    if is_certain:
        connection.execute(statements["write"])
        has_chains = "true"
    else:
        from_all_calls = read_statement("write_from_all_calls")
        context.prepare(from_all_calls)
        connection.execute(from_all_calls)
        has_chains = "EXISTS (FROM facts.callers)"
    connection.execute(statements["count_calls"].replace("$has_chains", has_chains))
    connection.execute("; ".join(f"DROP TABLE IF EXISTS internal.{table}" for table in _TABLES))
