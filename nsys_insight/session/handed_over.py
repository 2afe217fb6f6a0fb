"""What of a trace's raw tables goes into a copy of it in another form."""

from __future__ import annotations

from nsys_insight.ingest import private
from nsys_insight.ingest.contract import contract
from nsys_insight.sql.quoting import identifier, literal


def rows_handed_over(table: str) -> str:
    """SQL for the rows of a raw table that are given to others: without what is private, and unused strings."""
    if table in private.SETTINGS:
        return f"SELECT name, value FROM facts.captured WHERE origin = {literal(table)}"
    return f"SELECT * FROM raw.{identifier(table)}{private.handed_over(table, 'raw', contract())}"
