"""The functions in the call stacks of CPU samples and operating system calls, and these call stacks.

The two tables are read one after the other. They have the same columns, and DuckDB would take scans of both for one
scan (docs/decisions.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.paths import read_query
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context

# The tables of call stacks, each with what its stacks belong to. The statements name the first table.
TABLES = {"SAMPLING_CALLCHAINS": "sample", "OSRT_CALLCHAINS": "os"}


def fill(context: Context) -> None:
    """Fill `facts.cpu_frames` and `facts.cpu_chains`."""
    for table, owner in TABLES.items():
        # Most captures have neither table, and a statement without rows takes as long as one with a few.
        context.prepare(any_row := f"SELECT 1 FROM raw.{table} LIMIT 1")
        if not context.connection.execute(any_row).fetchall():
            continue
        for name in ("names", "chains"):
            statement = bind(
                read_query(f"facts/cpu_frames/{name}").replace(next(iter(TABLES)), table), {"owner": owner}
            )
            context.prepare(statement)
            context.connection.execute(statement)
