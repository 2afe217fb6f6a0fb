/* parameters = ["idle_gaps", "windows"] */
-- The causes of idle time in each of `windows` (start_ns, end_ns; disjoint), by the rules of `_idle_of`. `idle_gaps`
-- has the columns of `_idle_time`. The CTE that reads all gaps is not materialized: DuckDB would assume that it is
-- small, and hash it.
WITH uncut_gaps AS NOT MATERIALIZED (
    FROM whole_in(idle_gaps, windows)
),
cut_gaps AS MATERIALIZED (
    FROM cut_in(idle_gaps, windows)
)
SELECT gpu_id, window_ns, cause, host, idle_ns
FROM _idle_of('uncut_gaps', 'cut_gaps');
