/*
description = """The budget of each steady step, one row per step and metric: what the report per-token summarizes, and
    diff compares."""
[columns]
step = "Number of the step"
place = "Position of the metric in a budget"
metric = "What was counted or measured"
kind = "time or count, which can be divided by the tokens of a step; mean, which cannot"
value = "In the unit that the metric's name ends in; NULL when unknown"
*/
WITH steady_steps AS (
    SELECT * FROM steps WHERE phase = 'steady'
),
-- The parts of `step_budget` without busy time, which has no `host`.
parts AS MATERIALIZED (
    SELECT step, part, sum(time_ns) AS idle_ns
    FROM step_budget
    WHERE part NOT IN ('gpu', 'communication') AND (part <> 'copy' OR host IS NOT NULL)
    GROUP BY ALL
),
-- A mean over the GPUs, as gpu_idle_ns is. Every budget has six parts; others only if they occur.
idle AS (
    SELECT s.step, p.part, coalesce(sum(i.idle_ns), 0) / any_value(g.gpus) AS idle_ns
    FROM steady_steps AS s
    JOIN (SELECT step, count(*) AS gpus FROM step_gpus GROUP BY step) AS g USING (step)
    CROSS JOIN (
        SELECT unnest(['launch', 'sync', 'copy', 'allocation', 'dependency', 'profiler']) AS part
        UNION
        SELECT part FROM parts
    ) AS p
    LEFT JOIN parts AS i ON i.step = s.step AND i.part = p.part
    GROUP BY s.step, p.part
)
FROM _budget_of('steady_steps')
UNION ALL
SELECT step, _idle_place(part), _idle_metric(part), 'time', idle_ns
FROM idle;
