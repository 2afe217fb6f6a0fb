-- The causes of idle time in each of some windows (start_ns, end_ns; disjoint), by the rules of `_idle_of`, of gaps
-- that have the columns of `_idle_time`. What reads all gaps is not materialized: DuckDB would take it to be small, and
-- hash it.
CREATE MACRO _idle_in(idle_gaps, windows) AS TABLE
WITH whole AS NOT MATERIALIZED (
    FROM whole_in(idle_gaps, windows)
),
cut AS MATERIALIZED (
    FROM cut_in(idle_gaps, windows)
)
SELECT gpu_id, window_ns, cause, host, idle_ns
FROM _idle_of('whole', 'cut');
