/*
title = "Some steps take longer than the others"
family = "steps"
overlaps = true
meaning = """
They take longer than the median step; their extra time is given as an average over all steps."""
action = """
See what runs only in them: logging, a checkpoint, an allocation, garbage collection, a drop of the clock rate."""
caveat = """
They do different work, such as a prefill among decode steps."""
report = "steps"
when = "SELECT 1 FROM steps WHERE phase = 'steady' AND is_outlier LIMIT 1"
*/
WITH steady AS (
    FROM steps WHERE phase = 'steady'
),
longer AS (
    SELECT s.step, s.start_ns, s.reason, s.duration_ns, s.duration_ns - m.median_ns AS more_ns
    FROM steady AS s, (SELECT median(duration_ns) AS median_ns FROM steady) AS m
    WHERE s.is_outlier AND s.duration_ns > m.median_ns
),
worst AS (
    FROM longer ORDER BY more_ns DESC, step LIMIT 1
)
SELECT
    sum(more_ns) / (SELECT count(*) FROM steady) / (SELECT tokens_per_step FROM step_method) AS recoverable_ns,
    100 * sum(more_ns) / (SELECT sum(duration_ns) FROM steady) AS wall_pct,
    (SELECT 'step ' || step || ', at ' || format('{:.3f} ms', start_ns / 1e6) FROM worst) AS place,
    count(*) || ' of ' || (SELECT count(*) FROM steady) || ' steps; the slowest, '
        || (SELECT time_text(duration_ns) || ': ' || reason FROM worst) AS evidence
FROM longer
HAVING count(*) > 0
