"""The rows of a trace's raw tables that its conversions contain."""

from __future__ import annotations

from nsys_insight.ingest import private
from nsys_insight.ingest.expected_schema import read_expected_schema
from nsys_insight.sql.quoting import identifier, literal


def select_exported_rows(table: str) -> str:
    """Write SQL for the rows of a raw table that are exported: without private data and unused strings."""
    if table in private.SETTINGS_TABLES:
        return f"SELECT name, value FROM facts.captured WHERE origin = {literal(table)}"
    return f"SELECT * FROM raw.{identifier(table)}{private.write_row_filter(table, 'raw', read_expected_schema())}"
