"""Columns of a copy that have one value throughout, such as the process in a trace of one: they are noted, not written.

Of a big export that is a third of all columns. What they would hold is in the comment of their table.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nsys_insight.ingest.sqlite_cells import NULL
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from nsys_insight.ingest.sqlite_cells import Ints
    from nsys_insight.ingest.sqlite_pages import Batch

# What tells copies with such columns from those of before, which had all; part of their key.
NOTED = "columns of one value are in the table's comment"


class Copied:
    """A table that is filled batch by batch, whose columns are written from where on they have a second value.

    The first column is written in any case, and all are without `may_note`.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, name: str, columns: Sequence[str], *, may_note: bool = True
    ) -> None:
        """Nothing is there yet; `name` is the table's, quoted, and its columns are whole numbers."""
        self._connection, self._name, self._columns = connection, name, columns
        self._notable = columns[1:] if may_note else ()
        self._constants: dict[str, int] | None = None

    def add(self, batch: Batch) -> None:
        """Add rows."""
        rows = batch.columns
        if not len(rows[self._columns[0]]):
            return
        if self._constants is None:
            self._constants = {name: int(rows[name][0]) for name in self._notable if _is_one(rows[name])}
            written = ", ".join(f"{identifier(name)} BIGINT" for name in self._columns if name not in self._constants)
            self._connection.execute(f"CREATE TABLE {self._name} ({written})")
        for name, value in list(self._constants.items()):
            if not (rows[name] == value).all():
                add = f"ALTER TABLE {self._name} ADD COLUMN {identifier(name)} BIGINT DEFAULT {_sql(value)}"
                self._connection.execute(add)
                del self._constants[name]
        names = [name for name in self._columns if name not in self._constants]
        cells = (
            f"nullif({identifier(name)}, {NULL})" if name in batch.nullable else identifier(name) for name in names
        )
        self._connection.register("batch", {name: rows[name] for name in names})
        into = ", ".join(map(identifier, names))
        self._connection.execute(f"INSERT INTO {self._name} ({into}) SELECT {', '.join(cells)} FROM batch")
        self._connection.unregister("batch")

    def end(self) -> None:
        """Note the columns that have one value; without any rows all are there."""
        if self._constants is None:
            columns = ", ".join(f"{identifier(name)} BIGINT" for name in self._columns)
            self._connection.execute(f"CREATE TABLE {self._name} ({columns})")
        elif self._constants:
            values = {name: None if value == NULL else value for name, value in self._constants.items()}
            self._connection.execute(f"COMMENT ON TABLE {self._name} IS {literal(json.dumps(values))}")


def noted(connection: duckdb.DuckDBPyConnection, catalog: str) -> dict[str, dict[str, int | None]]:
    """The columns that are noted of tables in the schema `main` of a copy, with their values."""
    of_copy = f"database_name = {literal(catalog)} AND comment IS NOT NULL"
    rows = connection.execute(f"SELECT table_name, comment FROM duckdb_tables() WHERE {of_copy}").fetchall()
    return {table: json.loads(comment) for table, comment in rows}


def shown(relation: str, constants: Mapping[str, int | None]) -> str:
    """SQL for the rows of a relation, with the columns that were noted."""
    columns = ", ".join(f"{_sql(value)} AS {identifier(name)}" for name, value in constants.items())
    return f"(SELECT *, {columns} FROM {relation})" if constants else relation


def _is_one(column: Ints) -> bool:
    return bool(column[0] == column[-1] and (column == column[0]).all())


def _sql(value: int | None) -> str:
    return f"{'NULL' if value is None or value == NULL else int(value)}::BIGINT"
