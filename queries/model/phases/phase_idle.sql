/*
description = """The idle time in each step of a phase by cause, a mean over the GPUs that the process used; the parts
    add up to `phase_steps.gpu_idle_ns`."""
stored = true
[columns]
phase_step = "The step, as in `phase_steps`"
cause = "Cause of the idle time, as in `gpu_idle`"
part = "Part of the budget, as in `step_budget`, but a wait has only its own time, not the time after it"
idle_ns = "How long"
*/
-- The causes of the idle time in the steps of phases, as a mean over the GPUs that the process used.
WITH gaps AS NOT MATERIALIZED (
    FROM _idle_time
),
windows AS (
    SELECT start_ns, end_ns FROM facts.phase_steps
),
idle_by_cause AS (
    SELECT s.phase_step, s.gpus, i.cause, i.idle_ns
    FROM _idle_in('gaps', 'windows') AS i
    JOIN facts.phase_steps AS s ON s.start_ns = i.window_ns
    WHERE map_contains(s.gpus, i.gpu_id)
    UNION ALL
    SELECT s.phase_step, s.gpus, 'start-up and end', cardinality(s.gpus) * greatest(0,
        greatest(0, least(w.start_ns, s.end_ns) - s.start_ns) + greatest(0, s.end_ns - greatest(w.end_ns, s.start_ns)))
    FROM facts.phase_steps AS s CROSS JOIN (SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM wall) AS w
)
SELECT phase_step, cause, cause AS part, sum(idle_ns) / any_value(cardinality(gpus)) AS idle_ns
FROM idle_by_cause
GROUP BY phase_step, cause
HAVING sum(idle_ns) > 0;
