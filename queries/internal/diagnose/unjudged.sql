-- Relevant questions that this trace cannot answer, each with the nsys flag or the action that provides the data. A
-- subject is a template (`text.templates`) over the other columns.
WITH missing AS (
    SELECT metric, detail FROM _missing_data
),
budget_parts AS (
    SELECT part, wall_pct FROM classify_report
)
SELECT subject, remedy, graph_pct, process_ids
FROM (
    SELECT
        0 AS priority, 'what the GPU does' AS subject, detail AS remedy, NULL::DOUBLE AS graph_pct,
        NULL::BIGINT[] AS process_ids
    FROM missing
    WHERE metric = 'kernels' AND (NOT EXISTS (FROM budget_parts) OR EXISTS (FROM _unrecorded WHERE what = 'kernels'))
    UNION ALL BY NAME
    SELECT
        1 AS priority, 'kernels and idle time inside CUDA graphs, {graph_pct} of GPU time' AS subject,
        'capture with --cuda-graph-trace=node' AS remedy, whole_pct::DOUBLE AS graph_pct
    FROM _graph_tracing WHERE wholes > 0
    UNION ALL BY NAME
    SELECT 2 AS priority, 'steps' AS subject, 'mark them with NVTX ranges, or use --step-range NAME' AS remedy
    WHERE EXISTS (FROM budget_parts) AND NOT EXISTS (FROM steps WHERE phase = 'steady')
        AND EXISTS (FROM _operation_counts WHERE kind IN ('kernel', 'graph'))
    UNION ALL BY NAME
    SELECT
        3 AS priority,
        'what {process_ids:process|processes} did on a GPU, if anything: NCCL ran, but only the CUDA calls of other '
            'processes are recorded' AS subject,
        'capture with --trace-fork-before-exec=true' AS remedy, list(process_id ORDER BY process_id) AS process_ids
    FROM _silent_ranks
    HAVING count(*) > 0
    UNION ALL BY NAME
    SELECT
        4 AS priority, 'place in the program' AS subject,
        if(starts_with(detail, '-t'), 'capture with -t cuda,nvtx', 'mark ' || detail) AS remedy
    FROM missing
    WHERE metric = 'nvtx_ranges' AND EXISTS (FROM budget_parts)
        AND EXISTS (FROM _operation_counts WHERE kind IN ('kernel', 'graph'))
    UNION ALL BY NAME
    SELECT
        5 AS priority, 'what bounds the kernels' AS subject,
        'capture with --gpu-metrics-devices=all, or use ncu: nsys-insight ncu plan' AS remedy
    FROM missing
    WHERE metric = 'gpu_metric_samples' AND EXISTS (FROM budget_parts WHERE part = 'gpu' AND wall_pct >= 50)
        AND coalesce((SELECT sum(kernel_time_pct) FROM classify_kernels_report WHERE evidence = 'ncu'), 0) < 50
    UNION ALL BY NAME
    SELECT 6 AS priority, 'CPU activity' AS subject, 'capture with --sample=process-tree' AS remedy
    FROM host_report
    WHERE code = 'cpu_work' AND wall_pct >= 10
        AND coalesce((SELECT sum(work_pct) FROM _cpu_work WHERE counted_by = 'activity' AND is_known), 0) < 50
    UNION ALL BY NAME
    SELECT 7 AS priority, 'memory usage' AS subject, 'capture with --cuda-memory-usage=true' AS remedy
    FROM missing
    WHERE metric = 'memory_events' AND EXISTS (FROM budget_parts WHERE part = 'allocation' AND wall_pct >= 1)
)
ORDER BY priority
