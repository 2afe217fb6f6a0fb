/*
description = "One row: the idle time that the host causes, and its launches, of the steady steps; else of the scope."
stored = true
progress = "late launches"
[columns]
has_steps = "Whether there are steady steps"
all_ns = "Idle time for which the host launched late"
cpu_ns = "The part in which it worked on the CPU outside of launches"
managed_ns = "The part in which it touched managed memory"
gpus = "GPUs that were used"
calls = "Launch calls, in steps without those of graphs"
call_ns = "Mean time of a launch call in a step; NULL without steps"
operations = "Operations on the GPUs"
*/
SELECT
    s.steps > 0 AS has_steps, i.all_ns, i.cpu_ns, i.managed_ns, greatest(if(has_steps, g.gpus, i.gpus), 1) AS gpus,
    if(has_steps, s.calls, c.calls) AS calls, s.call_ns, if(has_steps, s.operations, o.operations) AS operations
FROM (
    SELECT
        sum(idle_ns) FILTER (cause = 'launch') AS all_ns,
        sum(idle_ns) FILTER (host IN ('CPU work', 'MPI calls', 'managed memory') OR is_in_step AND host = 'API calls')
            AS cpu_ns,
        coalesce(sum(idle_ns) FILTER (host = 'managed memory'), 0) AS managed_ns,
        count(DISTINCT gpu_id) AS gpus
    FROM (
        SELECT gpu_id, cause, host, idle_ns, true AS is_in_step FROM step_idle
        UNION ALL
        SELECT gpu_id, cause, host, idle_ns, false FROM gpu_idle WHERE NOT EXISTS (FROM steps WHERE phase = 'steady')
    )
) AS i
CROSS JOIN (
    SELECT
        count(*) AS steps, sum(launch_calls - graph_launches)::DOUBLE AS calls,
        sum(api_launch_ns) / nullif(sum(launch_calls), 0) AS call_ns,
        sum(coalesce(kernels, launch_calls) + h2d_copies + d2h_copies) AS operations
    FROM steps WHERE phase = 'steady'
) AS s
CROSS JOIN (SELECT count(DISTINCT gpu_id) AS gpus FROM step_gpus) AS g
CROSS JOIN (
    SELECT coalesce(sum(calls), 0)::DOUBLE AS calls FROM _call_counts WHERE call_group IN ('launch', 'graph launch')
) AS c
CROSS JOIN (SELECT sum(operations) AS operations FROM _operation_counts) AS o;
