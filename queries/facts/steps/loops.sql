-- The loops that may be the steps, in descending order of GPU time.
SELECT loop, depth, iterations, operations, launches, gpu_share, graph_share, regular_share
FROM facts.loops
ORDER BY gpu_share DESC, loop
