/*
title = "The GPU is idle at the start"
family = "outside"
share_of = "trace"
meaning = """
The trace begins long before the first operation on the GPU: contexts, modules and memory are set up, data is loaded."""
action = """
Capture only the steady state: cudaProfilerStart with --capture-range=cudaProfilerApi, or --delay."""
caveat = """
You are interested in the start."""
report = "idle"
when = "SELECT 1 FROM idle_report WHERE host = 'before the first operation' HAVING avg(wall_pct) >= $least_pct"

[params.least_pct]
default = 5.0
help = "Share of the trace's wall time from which this is reported (5: what is common with a capture range)"
*/
WITH idle AS MATERIALIZED (
    SELECT min(time_ns) AS idle_ns, avg(wall_pct) AS wall_pct
    FROM idle_report
    WHERE host = 'before the first operation' AND EXISTS (FROM scope WHERE nvtx IS NULL AND from_ns IS NULL)
    HAVING avg(wall_pct) >= $least_pct
),
idle_times AS MATERIALIZED (
    SELECT NULL AS from_ns, min(start_ns) AS until_ns FROM _gpu_busy_parts WHERE EXISTS (FROM idle) HAVING count(*) > 0
)
SELECT
    NULL AS recoverable_ns,
    i.wall_pct,
    NULL AS place,
    'the first operation on the GPU begins after ' || time_text(i.idle_ns) || ' (' || share_text(i.wall_pct) || ')'
        || coalesce('; until then: ' || c.longest, '')
        || outside_calls_text(i.idle_ns, c.covered_ns) AS evidence
FROM idle AS i, _calls_in('idle_times') AS c
