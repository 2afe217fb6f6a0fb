/*
title = "Most of the trace is outside the steps"
family = "outside"
share_of = "trace"
meaning = """
Figures per step describe a small part of the trace; start-up, prefill, evaluation and the like are not in it."""
action = """
Ask about the rest with --from and --to, or capture only the steps."""
caveat = """
The loop runs much longer than the capture."""
report = "steps"

[params.least_pct]
default = 50.0
help = "Share of the trace's wall time outside the steady steps from which this is reported (50: most of it)"
*/
SELECT
    NULL AS recoverable_ns,
    100.0 * (w.wall_ns - s.steps_ns) / w.wall_ns AS wall_pct,
    NULL AS place,
    s.steps || CASE s.steps WHEN 1 THEN ' steady step takes ' ELSE ' steady steps take ' END
        || time_text(s.steps_ns) || ' of ' || time_text(w.wall_ns)
        || coalesce(
            (SELECT ', in which the GPU is busy ' || share_text(avg(wall_pct)) FROM idle_report WHERE cause = 'busy'),
            ''
        ) AS evidence
FROM (SELECT count(*) AS steps, sum(duration_ns)::BIGINT AS steps_ns FROM steps WHERE phase = 'steady') AS s,
    (SELECT sum(duration_ns)::BIGINT AS wall_ns FROM wall) AS w
WHERE 100.0 * (w.wall_ns - s.steps_ns) >= $least_pct * w.wall_ns
    AND EXISTS (FROM scope WHERE nvtx IS NULL AND from_ns IS NULL)
