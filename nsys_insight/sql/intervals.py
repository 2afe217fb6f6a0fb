"""SQL for time intervals."""

from __future__ import annotations


def merge_intervals(keys: str, table: str) -> str:
    """Write SQL that merges a table's overlapping intervals into disjoint ones, per value of the key columns."""
    partition, comma = (f"PARTITION BY {keys}", ",") if keys else ("", "")
    return f"""
        WITH with_previous_end AS (
            SELECT *, max(end_ns)
                OVER ({partition} ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS previous_end_ns
            FROM {table}
        ), islands AS (
            SELECT *, sum(CASE WHEN previous_end_ns IS NULL OR start_ns > previous_end_ns THEN 1 ELSE 0 END)
                OVER ({partition} ORDER BY start_ns ROWS UNBOUNDED PRECEDING) AS island
            FROM with_previous_end
        )
        SELECT {keys}{comma} min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM islands GROUP BY {keys}{comma} island
    """
