/*
title = "The GPU has nothing to do at the end"
family = "outside"
of = "trace"
meaning = """
The trace goes on long after the last operation on the GPU: results are looked at, memory and contexts are released."""
action = """
Capture the steady state alone: cudaProfilerStop and --capture-range=cudaProfilerApi, or --duration."""
caveat = """
The end is what you care about."""
report = "idle"

[params.least_pct]
default = 5.0
help = "Share of the trace's wall from which on it is worth a word (5: as at the start)"
*/
SELECT
    NULL AS recoverable_ns,
    avg(i.wall_pct) AS wall_pct,
    NULL AS place,
    'the last operation on the GPU ends ' || time_text(min(i.time_ns)) || ' before the last CUDA call does (' || share_text(avg(i.wall_pct)) || ')'
        || coalesce('; from then on: ' || any_value(c.longest), '')
        || CASE WHEN 10 * (min(i.time_ns) - any_value(c.covered_ns)) >= min(i.time_ns)
            THEN '; ' || time_text(min(i.time_ns) - any_value(c.covered_ns)) || ' outside of CUDA calls' ELSE '' END AS evidence
FROM idle_report AS i, _calls_between((SELECT max(end_ns) FROM gpu_busy), NULL) AS c
WHERE i.host = 'after the last operation' AND EXISTS (FROM scope WHERE nvtx IS NULL AND to_ns IS NULL)
HAVING avg(i.wall_pct) >= $least_pct
