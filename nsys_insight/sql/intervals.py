"""SQL about intervals of time."""

from __future__ import annotations


def merged(keys: str, table: str) -> str:
    """SQL for the union of a table's intervals as disjoint ones, within each value of the key columns."""
    by, comma = (f"PARTITION BY {keys}", ",") if keys else ("", "")
    return f"""
        WITH reach AS (
            SELECT *, max(end_ns)
                OVER ({by} ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
            FROM {table}
        ), islands AS (
            SELECT *, sum(CASE WHEN reached IS NULL OR start_ns > reached THEN 1 ELSE 0 END)
                OVER ({by} ORDER BY start_ns ROWS UNBOUNDED PRECEDING) AS island
            FROM reach
        )
        SELECT {keys}{comma} min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM islands GROUP BY {keys}{comma} island
    """
