"""The functions that call chains of samples and of calls of the operating system name, and these chains.

Table by table, for both have the same columns: DuckDB would take scans of both for one (docs/decisions.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context

# The tables of chains, and what each is of. The statements name the first.
TABLES = {"SAMPLING_CALLCHAINS": "sample", "OSRT_CALLCHAINS": "os"}


def fill(context: Context) -> None:
    """Fill `facts.cpu_frames` and `facts.cpu_chains`."""
    for table, of in TABLES.items():
        # Most captures have none of them, and a statement without rows takes as long as one with a few.
        context.prepare(any_row := f"SELECT 1 FROM raw.{table} LIMIT 1")
        if context.connection.execute(any_row).fetchone() is None:
            continue
        for name in ("names", "chains"):
            statement = bind(query(f"facts/cpu_frames/{name}").replace(next(iter(TABLES)), table), {"of": of})
            context.prepare(statement)
            context.connection.execute(statement)
