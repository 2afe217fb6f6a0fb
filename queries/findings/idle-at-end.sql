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
WITH last_work AS (
    SELECT max(end_ns) AS at_ns FROM gpu_busy
),
called AS (
    SELECT c.name, greatest(c.start_ns, l.at_ns) AS start_ns, c.end_ns
    FROM outer_api_calls AS c, last_work AS l
    WHERE c.end_ns > l.at_ns
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
    'the last operation on the GPU ends ' || time_text(min(i.time_ns)) || ' before the last CUDA call does (' || share_text(avg(i.wall_pct)) || ')'
        || coalesce((SELECT '; from then on: ' || string_agg(name || ', ' || time_text(total_ns), '; ' ORDER BY total_ns DESC, name)
            FROM (FROM calls ORDER BY total_ns DESC, name LIMIT 2)), '')
        || (SELECT CASE WHEN 10 * (min(i.time_ns) - time_ns) >= min(i.time_ns) THEN '; ' || time_text(min(i.time_ns) - time_ns) || ' outside of CUDA calls' ELSE '' END FROM within) AS evidence
FROM idle_report AS i
WHERE i.host = 'after the last operation' AND EXISTS (FROM scope WHERE nvtx IS NULL AND to_ns IS NULL)
HAVING avg(i.wall_pct) >= $least_pct
