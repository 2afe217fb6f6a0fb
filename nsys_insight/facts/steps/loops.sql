-- The loops that may be the steps, in descending order of GPU time, and whether the host waits in each iteration.
SELECT
    loop, depth, iterations, operations, launches, gpu_share, graph_share, regular_share, structure_share,
    loop IN (SELECT loop FROM facts.loop_operations WHERE kind = 'wait') AS has_waits
FROM facts.loops
ORDER BY gpu_share DESC, loop
