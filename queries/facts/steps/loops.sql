-- The loops that may be the steps, in descending order of GPU time, and whether the host waits in each iteration.
SELECT
    loop, parent, depth, iterations, per_parent, parent_weight, marks, operations, launches, gpu_share, graph_share,
    regular_share, structure_share,
    loop IN (SELECT loop FROM facts.loop_operations WHERE kind = 'wait') AS has_waits
FROM facts.loops
ORDER BY gpu_share DESC, loop
