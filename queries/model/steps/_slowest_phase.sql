/*
description = """The part of a step in which the GPU waits longest for launches, where each step has several NVTX ranges
    one after the other; otherwise the ranges that are the steps."""
[columns]
place = "The name of the ranges"
*/
WITH steps_of_ranges AS (
    SELECT pattern, process_id, string_split(pattern, ', ') AS names FROM step_method WHERE method = 'nvtx'
),
phases AS (
    SELECT n.start_ns, n.end_ns, folded_name(n.name) AS name
    FROM nvtx_ranges AS n JOIN steps_of_ranges AS s USING (process_id)
    WHERE len(s.names) > 1 AND n.end_ns > n.start_ns AND list_has_any(s.names, [n.name, folded_name(n.name)])
    -- Inner ranges may have the same name.
    QUALIFY coalesce(max(n.end_ns) OVER (
        ORDER BY n.start_ns, n.end_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) <= n.start_ns, true)
),
late_launches AS (
    SELECT call_ns AS start_ns, end_ns - start_ns AS idle_ns FROM _idle_time WHERE host = 'late'
),
idle_of_phases AS (
    SELECT name, sum(idle_ns) AS idle_ns
    FROM (SELECT window_ns AS start_ns, idle_ns FROM begun_in('late_launches', 'phases')) JOIN phases USING (start_ns)
    GROUP BY name
)
SELECT coalesce((SELECT arg_max(name, idle_ns) FROM idle_of_phases), pattern) AS place FROM steps_of_ranges;
