-- What the trace cannot tell and would matter here, with how to capture it.
WITH missing AS (
    SELECT metric, detail FROM info_report WHERE section = 'missing'
),
parts AS (
    SELECT part, wall_pct FROM classify_report
)
SELECT what, how
FROM (
    SELECT 0 AS turn, 'what the GPU does: no kernel and no copy is in the trace' AS what, detail AS how FROM missing WHERE metric = 'kernels'
    UNION ALL
    SELECT 1, 'the kernels in CUDA graphs, ' || share_text(value) || ' of GPU time, and whether the GPU is idle between them', 'nsys profile --cuda-graph-trace=node'
    FROM info_report WHERE metric = 'whole_graph_pct'
    UNION ALL
    SELECT 2, 'what a step costs: no steps were found', 'an NVTX range around each step (-t cuda,nvtx), or --step-range NAME'
    WHERE EXISTS (FROM parts) AND NOT EXISTS (FROM steps WHERE phase = 'steady')
    UNION ALL
    SELECT 3, 'where in the program: there are no NVTX ranges', 'nsys profile -t cuda,nvtx, and ranges around the program''s steps'
    FROM missing WHERE metric = 'nvtx_ranges' AND EXISTS (FROM parts)
    UNION ALL
    SELECT 4, 'what bounds the kernels: there are no GPU metrics', 'nsys profile --gpu-metrics-devices=all; or ncu, see nsys-insight ncu plan'
    FROM missing WHERE metric = 'gpu_metric_samples' AND EXISTS (FROM parts WHERE part = 'gpu' AND wall_pct >= 50)
    UNION ALL
    SELECT 5, 'what the CPU works at while the GPU waits', 'nsys profile -t cuda,nvtx,osrt --sample=process-tree'
    FROM missing WHERE metric = 'os_calls' AND EXISTS (FROM host_report WHERE bottleneck = 'CPU work' AND wall_pct >= 10)
    UNION ALL
    SELECT 6, 'how much is allocated', 'nsys profile --cuda-memory-usage=true'
    FROM missing WHERE metric = 'memory_events' AND EXISTS (FROM parts WHERE part = 'allocation' AND wall_pct >= 1)
    UNION ALL
    SELECT 7, 'which line of code waits or allocates', 'nsys profile --cudabacktrace=all (slows the host more)'
    FROM missing WHERE metric = 'api_backtraces' AND EXISTS (FROM parts WHERE part IN ('sync', 'allocation') AND wall_pct >= 3)
)
ORDER BY turn
