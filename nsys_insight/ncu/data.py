"""Imported ncu data without a trace: a connection to the model's ncu views over one store."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from nsys_insight.ingest.database import connect
from nsys_insight.ingest.ncu import store as stores
from nsys_insight.ingest.source import Source
from nsys_insight.model import template, views
from nsys_insight.session import sandbox
from nsys_insight.session.model import Model

if TYPE_CHECKING:
    from pathlib import Path

VIEW = "ncu_kernels"


class NcuData:
    """A connection that answers SQL over the ncu views of one store.

    Args:
        store: A file that `ncu import` wrote.

    Raises:
        TraceError: The file cannot be read.
    """

    def __init__(self, store: Path) -> None:
        """Open the store. Store `ncu_kernels` as a table, because every rule reads it."""
        self.connection = connect()
        source = stores.attach(self.connection, store, Source({}, {}))
        template.copy_into(self.connection)
        sandbox.lock(self.connection)
        model = Model(self.connection, source)
        for view in (VIEW, "ncu_stalls", "ncu_metrics", "ncu_rules", "ncu_launches", "ncu_roofline", "_ncu_roofs()"):
            model.show(f"FROM {view}")
        self.connection.execute(
            f"""CREATE TABLE stored_kernels AS FROM {VIEW};
                DROP VIEW {VIEW};
                ALTER TABLE stored_kernels RENAME TO {VIEW}"""
        )

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Run a query and return its rows, with values by column."""
        result = self.connection.execute(sql)
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def __enter__(self) -> Self:
        """Return this object, for a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.connection.close()


@cache
def read_column_metrics() -> dict[str, tuple[str, ...]]:
    """Read the metrics behind each column of `ncu_kernels` from the column's comment."""
    meanings = views.definitions()[VIEW].own_meanings
    return {column: tuple(re.findall(r"`(\w+__[\w.]+)`", text)) for column, text in meanings.items()}
