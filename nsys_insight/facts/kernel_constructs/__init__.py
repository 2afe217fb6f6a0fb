"""The constructs of kernels, by their names.

The patterns of the catalog are compiled only for entries that may match: with texts that a name of the trace has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.sql.quoting import literal, matches

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context


def fill(context: Context) -> None:
    """Fill `facts.kernel_constructs`."""
    cases = [
        f"WHEN {matches('name', row.kernels)} THEN {literal(row.construct)}"
        for row in context.runner("kernel_constructs")("candidates")
    ]
    construct = f"CASE {' '.join(cases)} END" if cases else "NULL"
    context.connection.execute(f"INSERT INTO facts.kernel_constructs SELECT name_id, {construct} FROM kernel_names")
