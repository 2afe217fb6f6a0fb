/*
description = "The budget of each step of a phase, as `step_metrics` has it: one row per step and metric."
[columns]
phase_step = "The step, as in `phase_steps`"
phase = "Phase of the step"
batch_size = "Batch size, where the name of the range says"
place = "Position of the metric in a budget"
metric = "What was counted or measured"
kind = "time or count, which can be divided by the tokens of a step; mean, which cannot"
value = "In the unit that the metric's name ends in; NULL when unknown"
*/
WITH phase_steps_as_steps AS (
    SELECT *, phase_step AS step FROM phase_steps
),
-- Every budget has six parts; others only if they occur.
parts AS (
    SELECT unnest(['launch', 'sync', 'copy', 'allocation', 'dependency', 'profiler']) AS part
    UNION
    SELECT part FROM phase_idle
),
idle AS (
    SELECT phase_step, part, sum(idle_ns) AS idle_ns FROM phase_idle GROUP BY ALL
)
SELECT s.phase_step, s.phase, s.batch_size, b.place, b.metric, b.kind, b.value
FROM _budget_of('phase_steps_as_steps') AS b
JOIN phase_steps_as_steps AS s USING (step)
UNION ALL
SELECT
    s.phase_step, s.phase, s.batch_size,
    _idle_place(p.part), _idle_metric(p.part), 'time', coalesce(i.idle_ns, 0)
FROM phase_steps_as_steps AS s
CROSS JOIN parts AS p
LEFT JOIN idle AS i ON i.phase_step = s.phase_step AND i.part = p.part;
