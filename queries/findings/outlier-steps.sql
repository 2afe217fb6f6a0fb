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
WITH steady_steps AS (
    FROM steps WHERE phase = 'steady'
),
longer_steps AS (
    SELECT s.step, s.start_ns, s.reason, s.duration_ns, s.duration_ns - m.median_ns AS more_ns
    FROM steady_steps AS s, (SELECT median(duration_ns) AS median_ns FROM steady_steps) AS m
    WHERE s.is_outlier AND s.duration_ns > m.median_ns
),
slowest_step AS (
    FROM longer_steps ORDER BY more_ns DESC, step LIMIT 1
)
SELECT
    sum(more_ns) / (SELECT count(*) FROM steady_steps) / (SELECT tokens_per_step FROM step_method) AS recoverable_ns,
    100 * sum(more_ns) / (SELECT sum(duration_ns) FROM steady_steps) AS wall_pct,
    (SELECT 'step ' || step || ', at ' || format('{:.3f} ms', start_ns / 1e6) FROM slowest_step) AS place,
    count(*) || ' of ' || (SELECT count(*) FROM steady_steps) || ' steps; the slowest, '
        || (SELECT time_text(duration_ns) || ': ' || reason FROM slowest_step) AS evidence
FROM longer_steps
HAVING count(*) > 0
