/*
title = "The GPU waits for launches"
family = "launch"
meaning = """
The host launches kernels more slowly than the GPU runs them, so the GPU is idle in between."""
action = """
Capture the step in a CUDA graph (torch.compile mode reduce-overhead, torch.cuda.graph), or launch fewer kernels: fuse,
batch."""
caveat = """
The gain is small: without the profiler, expect three quarters of it or less."""
report = "classify"
*/
SELECT
    l.recoverable_ns,
    100 * l.recoverable_ns / w.time_ns AS wall_pct,
    (SELECT pattern FROM step_method WHERE method = 'nvtx') AS place,
    concat_ws('; ',
        'the GPU is idle for ' || time_text(l.time_ns) || ': ' || coalesce(l.evidence, ''),
        (SELECT counted_text(single_launches, 'launch call') || ' of ' || time_text(launch_call_ns) || ' a step'
            FROM graph_candidates_report WHERE single_launches > 0),
        (SELECT 'a kernel takes ' || time_text(avg(kernel_ns / kernels)) FROM steps
            WHERE phase = 'steady' AND kernels > 0 HAVING count(*) > 0)
    ) AS evidence
FROM (FROM classify_report WHERE part = 'launch') AS l, (FROM classify_report WHERE part = 'wall') AS w
-- cpu-work covers host-bound runs; many-launches covers runs in which a graph saves little, or no steps repeat.
WHERE l.see = 'graph-candidates' AND EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')
