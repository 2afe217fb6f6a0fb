/*
description = """Waits of the GPU in steady steps for a host that launches late. Where most of this time is in waits
    below 0.5 ms, Python runs the operations of a framework one by one. No row without such a framework, or without
    steps."""
[columns]
short_gaps = "Waits per step"
short_gap_ns = "Median wait"
short_share = "Share of the time that is in waits below 0.5 ms, as a fraction"
*/
SELECT
    count(*) / any_value(t.units) AS short_gaps, median(i.late_ns) AS short_gap_ns,
    sum(i.late_ns) FILTER (i.late_ns < 500000) / sum(i.late_ns) AS short_share
FROM (SELECT start_ns, end_ns - start_ns AS late_ns FROM _idle_time WHERE host = 'late') AS i
ASOF JOIN _steady_windows AS s ON s.start_ns <= i.start_ns
CROSS JOIN _step_totals AS t
WHERE i.start_ns < s.end_ns
    AND EXISTS (FROM frameworks WHERE is_program AND framework IN ('pytorch', 'inductor', 'jax', 'cupy'))
HAVING count(*) > 0;
