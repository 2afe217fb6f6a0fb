"""Run the query of a rule or view on tables of given rows, in milliseconds.

A table has only the columns that the query reads.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb

from nsys_insight.diagnose.findings import read_finding_rules
from nsys_insight.model.views import create_macros, definitions
from nsys_insight.sql.names import scan_names
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RULES = {rule.name: rule for rule in read_finding_rules()}
# A step of 1 ms on a busy GPU.
STEP = {
    "units": 1, "wall_ns": 1e6, "busy_ns": 9e5, "kernel_ns": 9e5, "idle_ns": 1e5, "launch_calls": 10, "has_steps": True,
}  # fmt: skip
LIMITS = {"high_limit_ns": 1e6, "low_limit_ns": 1e6}


@contextmanager
def open_rules() -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Give a function that runs the query of a rule or view on tables, each a list of rows, and returns its rows.

    Macros of the model need not be given. The family of a kernel that has none is that of its name.
    """
    with duckdb.connect() as connection:
        create_macros(connection)

        def run(name: str, **tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
            connection.begin()
            try:
                for table, rows in {"_step_limits": [LIMITS], **tables}.items():
                    selects = (
                        f"SELECT {', '.join(f'{_write(cell)} AS {column}' for column, cell in row.items())}"
                        for row in rows
                    )
                    query = " UNION ALL BY NAME ".join(selects) or "SELECT NULL AS none LIMIT 0"
                    connection.execute(f"CREATE TABLE {table} AS {query}")
                if "_steady_shapes" in tables and "family" not in tables["_steady_shapes"][0]:
                    connection.execute("ALTER TABLE _steady_shapes ADD COLUMN family VARCHAR")
                    connection.execute("UPDATE _steady_shapes SET family = kernel_family(name)")
                query = RULES[name].statement(waiting_pct=None) if name in RULES else definitions()[name].query
                for view in map(definitions().get, scan_names(query).model_names - tables.keys()):
                    if view and "parameters" in view.header:
                        connection.execute(view.create)
                result = connection.sql(query)
                return [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]
            finally:
                connection.rollback()

        yield run


def _write(cell: Any) -> str:
    """Write a value in SQL; `literal` writes a dict as a map."""
    if isinstance(cell, dict):
        return "{" + ", ".join(f"{name}: {_write(part)}" for name, part in cell.items()) + "}"
    return f"[{', '.join(map(_write, cell))}]" if isinstance(cell, list) else literal(cell)
