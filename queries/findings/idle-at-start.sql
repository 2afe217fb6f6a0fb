/*
title = "The GPU has nothing to do at first"
family = "outside"
of = "trace"
meaning = """
The trace begins long before the first operation on the GPU: contexts, modules and memory are set up, data are loaded."""
action = """
Capture the steady state alone: cudaProfilerStart and --capture-range=cudaProfilerApi, or --delay."""
caveat = """
Start-up is what you care about."""
report = "idle"

[params.least_pct]
default = 5.0
help = "Share of the trace's wall from which on it is worth a word (5: what is common with a capture range)"
*/
WITH first_work AS (
    SELECT min(start_ns) AS at_ns FROM gpu_busy
),
calls AS (
    SELECT c.name, sum(least(c.end_ns, f.at_ns) - c.start_ns)::BIGINT AS total_ns
    FROM outer_api_calls AS c, first_work AS f
    WHERE c.start_ns < f.at_ns
    GROUP BY c.name
)
SELECT
    NULL AS recoverable_ns,
    avg(i.wall_pct) AS wall_pct,
    NULL AS place,
    'the first operation on the GPU begins after ' || time_text(min(i.time_ns)) || ' (' || share_text(avg(i.wall_pct)) || ')'
        || coalesce((SELECT '; until then: ' || string_agg(name || ', ' || time_text(total_ns), '; ' ORDER BY total_ns DESC, name)
            FROM (FROM calls ORDER BY total_ns DESC, name LIMIT 2)), '') AS evidence
FROM idle_report AS i
WHERE i.host = 'before the first operation' AND EXISTS (FROM scope WHERE nvtx IS NULL AND from_ns IS NULL)
HAVING avg(i.wall_pct) >= $least_pct
