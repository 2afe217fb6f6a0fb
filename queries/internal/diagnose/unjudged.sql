-- Relevant questions that this trace cannot answer, each with the nsys flag or the action that provides the data.
WITH missing AS (
    SELECT metric, detail FROM info_report WHERE section = 'missing'
),
budget_parts AS (
    SELECT part, wall_pct FROM classify_report
)
SELECT subject, remedy
FROM (
    SELECT 0 AS priority, 'what the GPU does' AS subject, detail AS remedy
    FROM missing
    WHERE metric = 'kernels' AND (NOT EXISTS (FROM budget_parts) OR EXISTS (FROM _unrecorded WHERE what = 'kernels'))
    UNION ALL
    SELECT
        1, 'kernels and idle time inside CUDA graphs, ' || share_text(value) || ' of GPU time',
        'capture with --cuda-graph-trace=node'
    FROM info_report WHERE metric = 'whole_graph_pct'
    UNION ALL
    SELECT 2, 'steps', 'mark them with NVTX ranges, or use --step-range NAME'
    WHERE EXISTS (FROM budget_parts) AND NOT EXISTS (FROM steps WHERE phase = 'steady')
    UNION ALL
    SELECT
        3, 'what ' || CASE count(*) WHEN 1 THEN 'process ' ELSE 'processes ' END
            || string_agg(process_id::VARCHAR, ', ' ORDER BY process_id)
            || ' did on a GPU, if anything: NCCL ran, but only the CUDA calls of other processes are recorded',
        'capture with --trace-fork-before-exec=true'
    FROM _silent_ranks
    HAVING count(*) > 0
    UNION ALL
    SELECT 4, 'place in the program', 'capture with -t cuda,nvtx'
    FROM missing WHERE metric = 'nvtx_ranges' AND EXISTS (FROM budget_parts)
    UNION ALL
    SELECT 5, 'what bounds the kernels', 'capture with --gpu-metrics-devices=all, or use ncu: nsys-insight ncu plan'
    FROM missing
    WHERE metric = 'gpu_metric_samples' AND EXISTS (FROM budget_parts WHERE part = 'gpu' AND wall_pct >= 50)
        AND coalesce((SELECT sum(kernel_time_pct) FROM classify_kernels_report WHERE evidence = 'ncu'), 0) < 50
    UNION ALL
    SELECT 6, 'CPU activity', 'capture with --sample=process-tree'
    FROM host_report
    WHERE code = 'cpu_work' AND wall_pct >= 10
        AND coalesce((SELECT sum(work_pct) FROM _cpu_work WHERE counted_by = 'activity' AND is_known), 0) < 50
    UNION ALL
    SELECT 7, 'memory usage', 'capture with --cuda-memory-usage=true'
    FROM missing
    WHERE metric = 'memory_events' AND EXISTS (FROM budget_parts WHERE part = 'allocation' AND wall_pct >= 1)
)
ORDER BY priority
