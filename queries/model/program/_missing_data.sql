/*
description = """
What the trace does not have, and how to capture it. In a scope there are no rows: what a part of the trace lacks says
nothing about the capture."""
[columns]
place = "Position in the list"
metric = "What is missing"
detail = "The options of nsys that record it"
*/
WITH settings AS MATERIALIZED (
    FROM _capture_settings
)
SELECT place, metric, detail
FROM scope, LATERAL (
    VALUES
        (
            0, 'kernels',
            CASE
                WHEN EXISTS (FROM raw.DIAGNOSTIC_EVENT WHERE text LIKE '%driver version%not supported%')
                    THEN 'a newer nsys: this one does not support the CUDA version of the driver'
                WHEN (SELECT traces_cuda FROM settings)
                    THEN '--trace-fork-before-exec=true, for child processes, and cudaProfilerStop before they end by '
                        '_exit: CUDA was traced, but no call is recorded'
                ELSE 'nsys profile -t cuda'
            END,
            -- Calls without GPU work are a program that ran nothing on the GPU.
            NOT EXISTS (FROM _operation_counts) AND NOT EXISTS (FROM _unrecorded) AND NOT EXISTS (FROM _call_counts)
        ),
        (
            0, 'kernels',
            CASE
                WHEN EXISTS (FROM raw.DIAGNOSTIC_EVENT WHERE text LIKE 'Error when processing events%')
                    THEN 'nsys profile -t cuda, without nvtx, or a newer nsys: nsys failed to process some events'
                -- What a process has not flushed is lost if it ends by _exit, as forked workers of Python's
                -- multiprocessing do, or by a signal. --cuda-flush-interval does not help (docs/evidence/odd.md).
                ELSE 'nsys profile without --duration and --kill, until the program exits on its own, or calls '
                    'cudaProfilerStop before _exit, which ends forked workers of Python: nsys says that CUDA events '
                    'might be missing'
            END,
            NOT EXISTS (FROM _operation_counts) AND NOT EXISTS (FROM _unrecorded) AND EXISTS (FROM _call_counts)
                AND EXISTS (
                    FROM raw.DIAGNOSTIC_EVENT
                    WHERE regexp_matches(text, 'CUPTI events might be missing|^Not all CUDA events might')
                )
        ),
        (
            0, 'kernels',
            CASE
                -- The rows of a context are lost with it.
                WHEN NOT EXISTS (FROM _operation_counts) AND EXISTS (FROM _failed_kernel)
                    THEN 'a run in which no kernel fails'
                WHEN (SELECT is_wsl FROM settings)
                    THEN 'a newer nsys and a newer driver of Windows, or nsys of Windows: this is WSL2'
                WHEN EXISTS (FROM _operation_counts)
                    THEN 'a newer nsys or driver, or less at a time; and let the program end by itself'
                ELSE 'a newer nsys or driver; and let the program end by itself'
            END,
            EXISTS (FROM _unrecorded WHERE what = 'kernels')
        ),
        (1, 'graph_kernels', '--cuda-graph-trace=node', EXISTS (FROM _operation_counts WHERE kind = 'graph')),
        (
            2, 'nvtx_ranges',
            if((SELECT traces_nvtx FROM settings), '', '-t cuda,nvtx, and ')
                || 'ranges around the program''s steps',
            NOT EXISTS (FROM raw.NVTX_EVENTS WHERE eventType IN (59, 60, 70, 71))
        ),
        (3, 'memory_events', '--cuda-memory-usage=true', NOT EXISTS (FROM raw.CUDA_GPU_MEMORY_USAGE_EVENTS)),
        (4, 'gpu_metric_samples', '--gpu-metrics-devices=all', NOT EXISTS (FROM raw.GPU_METRICS WHERE value >= 0)),
        (5, 'os_calls', '-t osrt', NOT EXISTS (FROM raw.OSRT_API)),
        (6, 'unimportant_api_calls', '--cuda-trace-all-apis=true', (SELECT skips_calls FROM settings))
) AS m (place, metric, detail, is_missing)
WHERE is_missing AND coalesce(
    nvtx, steps, from_ns::VARCHAR, to_ns::VARCHAR, device_id::VARCHAR, process_id::VARCHAR, stream_id::VARCHAR
) IS NULL;
