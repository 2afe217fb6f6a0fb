/*
title = "The GPU is idle at the end"
family = "outside"
share_of = "trace"
meaning = """
The trace continues long after the last operation on the GPU: results are processed, memory and contexts are
released."""
action = """
Capture only the steady state: cudaProfilerStop with --capture-range=cudaProfilerApi, or --duration."""
caveat = """
You are interested in the end."""
report = "idle"
when = "SELECT 1 FROM idle_report WHERE host = 'after the last operation' HAVING avg(wall_pct) >= $least_pct"

[params.least_pct]
default = 5.0
help = "Share of the trace's wall time from which this is reported (5: as at the start)"
*/
WITH idle AS MATERIALIZED (
    SELECT min(time_ns) AS idle_ns, avg(wall_pct) AS wall_pct
    FROM idle_report
    WHERE host = 'after the last operation' AND EXISTS (FROM scope WHERE nvtx IS NULL AND to_ns IS NULL)
    HAVING avg(wall_pct) >= $least_pct
),
idle_times AS MATERIALIZED (
    SELECT max(end_ns) AS from_ns, NULL AS until_ns FROM _gpu_busy_parts WHERE EXISTS (FROM idle) HAVING count(*) > 0
)
SELECT
    NULL AS recoverable_ns,
    i.wall_pct,
    NULL AS place,
    'the last operation on the GPU ends ' || time_text(i.idle_ns) || ' before the last CUDA call does ('
        || share_text(i.wall_pct) || ')'
        || coalesce('; from then on: ' || c.longest, '')
        || outside_calls_text(i.idle_ns, c.covered_ns) AS evidence
FROM idle AS i, _calls_in('idle_times') AS c
