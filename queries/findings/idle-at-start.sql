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
SELECT
    NULL AS recoverable_ns,
    avg(i.wall_pct) AS wall_pct,
    NULL AS place,
    'the first operation on the GPU begins after ' || time_text(min(i.time_ns)) || ' (' || share_text(avg(i.wall_pct)) || ')'
        || coalesce('; until then: ' || any_value(c.longest), '')
        || CASE WHEN 10 * (min(i.time_ns) - any_value(c.covered_ns)) >= min(i.time_ns)
            THEN '; ' || time_text(min(i.time_ns) - any_value(c.covered_ns)) || ' outside of CUDA calls' ELSE '' END AS evidence
FROM idle_report AS i, _calls_between(NULL, (SELECT min(start_ns) FROM gpu_busy)) AS c
WHERE i.host = 'before the first operation' AND EXISTS (FROM scope WHERE nvtx IS NULL AND from_ns IS NULL)
HAVING avg(i.wall_pct) >= $least_pct
