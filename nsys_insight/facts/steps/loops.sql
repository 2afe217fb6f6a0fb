-- The loops that may be the steps, in descending order of GPU time, and whether the host waits in each iteration.
SELECT
    loop, parent, depth, iterations, per_parent, parent_weight, marks, operations, launches, gpu_share, launch_share,
    graph_share, regular_share, structure_share,
    loop IN (SELECT loop FROM facts.loop_operations WHERE kind = 'wait') AS has_waits,
    -- Calls of attention in a typical iteration, without those of inner loops.
    (
        SELECT coalesce(sum(o.repeats), 0)::BIGINT
        FROM facts.loop_operations AS o
        JOIN kernel_names AS k ON k.name_id = o.name_id AND k.family = 'attention'
        WHERE o.loop = l.loop
    ) AS attention_calls
FROM facts.loops AS l
ORDER BY gpu_share DESC, loop
