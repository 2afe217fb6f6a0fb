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
called AS (
    SELECT c.name, c.start_ns, least(c.end_ns, f.at_ns) AS end_ns
    FROM outer_api_calls AS c, first_work AS f
    WHERE c.start_ns < f.at_ns
),
calls AS (
    SELECT name, sum(end_ns - start_ns)::BIGINT AS total_ns FROM called GROUP BY name
),
-- The time in which any thread was in a call.
within AS (
    SELECT coalesce(sum(greatest(end_ns - greatest(start_ns, until_ns), 0)), 0)::BIGINT AS time_ns
    FROM (
        SELECT *, coalesce(max(end_ns) OVER (ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns) AS until_ns
        FROM called
    )
)
SELECT
    NULL AS recoverable_ns,
    avg(i.wall_pct) AS wall_pct,
    NULL AS place,
    'the first operation on the GPU begins after ' || time_text(min(i.time_ns)) || ' (' || share_text(avg(i.wall_pct)) || ')'
        || coalesce((SELECT '; until then: ' || string_agg(name || ', ' || time_text(total_ns), '; ' ORDER BY total_ns DESC, name)
            FROM (FROM calls ORDER BY total_ns DESC, name LIMIT 2)), '')
        || (SELECT CASE WHEN 10 * (min(i.time_ns) - time_ns) >= min(i.time_ns) THEN '; ' || time_text(min(i.time_ns) - time_ns) || ' outside of CUDA calls' ELSE '' END FROM within) AS evidence
FROM idle_report AS i
WHERE i.host = 'before the first operation' AND EXISTS (FROM scope WHERE nvtx IS NULL AND from_ns IS NULL)
HAVING avg(i.wall_pct) >= $least_pct
