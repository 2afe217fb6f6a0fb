/*
code = "NSI901"
title = "The capture is incomplete"
family = "capture"
severity = "warning"
meaning = """
nsys lost events or could not record them: counts are lower bounds, and the GPU may appear idle where it was not."""
evidence = [
    "{message}",
    [
        """{?lacks_calls}the trace has no CUDA API calls: what the host did and why the GPU waited cannot be determined;
        capture with -t cuda, and let the program end before the capture""",
        """{?lacks_kernels}{unrecorded_calls:launch call} {#unrecorded_calls:is|are} in the trace, but no kernels: the
        profiler lost what ran on the GPU, or could not record it""",
        """{?lacks_copies}{unrecorded_calls:copy call} {#unrecorded_calls:is|are} in the trace, but no copies: the time
        of copies on the GPU counts as idle time""",
    ],
    "for {unknown_pct} of the wall time, the launch call that ended the gap is not in the trace",
    """{lost_launches} of {launch_calls:launch call} ran no kernel that is in the trace: kernels are missing, and the
    GPU appears idle while they ran""",
    "{cut_launches:launch call} at the end ran no kernel that is in the trace: the capture ended first",
]
skip_if = """
What was lost is outside the part that you look at."""
effort = "flag"
links = ["Nsight Systems User Guide, Troubleshooting"]
report = "info"

[fix.less]
any = """
Capture less at a time (--capture-range=cudaProfilerApi, --duration, fewer -t options), and let the program exit on
its own."""

[fix.start]
any = """
Run the program without nsys to see that it uses the GPU. Then use an nsys that supports the CUDA version of the driver,
which nvidia-smi shows."""

[fix.driver]
any = "Update nsys: record with a version that supports the CUDA version of the driver."

[fix.end]
any = """
Wait for the GPU before the capture ends: call cudaDeviceSynchronize() before cudaProfilerStop(), or capture for
longer."""

[params.min_pct]
default = 1.0
help = "Share of the launch calls without recorded kernels from which this is reported (1: less changes no share)"

[params.end_pct]
default = 95.0
help = "Share of these calls after the last one that ran from which the end is reported as the cause (95: nearly all)"
*/
WITH launched_kernels AS (
    SELECT coalesce(sum(called), 0)::BIGINT AS kernels FROM _operation_counts WHERE kind = 'kernel'
),
-- The names of launch calls, if there are more of them than launched kernels. Only then are the calls checked one by
-- one, because calls inside other calls and failed calls count here, too. A launch that is captured into a graph runs
-- nothing itself.
suspect_calls AS (
    SELECT name FROM _call_counts
    WHERE call_group = 'launch'
        AND (SELECT sum(calls) FROM _call_counts WHERE call_group = 'launch') > (FROM launched_kernels)
        AND NOT EXISTS (FROM _call_counts WHERE call_group IN ('graph', 'graph launch'))
        AND NOT EXISTS (FROM _unrecorded WHERE what = 'kernels')
        AND EXISTS (
            FROM scope WHERE coalesce(nvtx, steps, from_ns::VARCHAR, to_ns::VARCHAR, device_id::VARCHAR,
                process_id::VARCHAR, stream_id::VARCHAR) IS NULL
        )
),
launch_calls AS (
    SELECT
        c.start_ns, k.correlation_id IS NULL AS is_lost,
        max(c.start_ns) FILTER (k.correlation_id IS NOT NULL) OVER (PARTITION BY c.process_id) AS last_ns
    FROM (FROM outer_api_calls SEMI JOIN suspect_calls USING (name) WHERE return_value = 0) AS c
    LEFT JOIN (SELECT DISTINCT process_id, correlation_id FROM kernel_events) AS k USING (process_id, correlation_id)
),
losses AS (
    SELECT
        count(*) AS calls, count(*) FILTER (is_lost) AS lost,
        100 * count(*) FILTER (is_lost AND start_ns > last_ns) >= $end_pct * lost AS is_end
    FROM launch_calls
    HAVING 100 * lost >= $min_pct * calls AND calls > 0
),
messages AS (
    SELECT left(regexp_replace(trim(message), '\s+', ' ', 'g'), 300) AS text,
        CASE WHEN NOT is_cuda_loss THEN 'driver' WHEN message LIKE '%been started correctly%' THEN 'start' END AS cure
    FROM diagnostics
    WHERE is_cuda_loss
        -- nsys reports each process that does not use CUDA, such as a data loader's.
        AND NOT coalesce(message LIKE '%not been started correctly%' AND EXISTS (FROM _call_counts)
            AND process_id NOT IN (SELECT process_id FROM _call_counts), false)
        -- A driver newer than nsys is a problem only if something is missing.
        OR message LIKE '%driver version%not supported%'
            AND (EXISTS (FROM losses) OR EXISTS (FROM _unrecorded WHERE what = 'kernels'))
),
problems AS (
    SELECT string_agg(DISTINCT text, ' ' ORDER BY text) AS message, NULL AS what, NULL AS calls
    FROM messages HAVING count(*) > 0
    UNION ALL
    SELECT NULL, what, calls FROM _unrecorded
)
SELECT
    NULL AS recoverable_ns, NULL::DOUBLE AS wall_pct, NULL AS place,
    coalesce((SELECT min(cure) FROM messages), 'less') AS cure_case,
    message, what = 'calls' AS lacks_calls, what = 'kernels' AS lacks_kernels, what = 'copies' AS lacks_copies,
    calls AS unrecorded_calls, NULL::DOUBLE AS unknown_pct,
    NULL::BIGINT AS lost_launches, NULL AS launch_calls, NULL AS cut_launches
FROM problems
UNION ALL
SELECT NULL, wall_pct, NULL, 'less', NULL, NULL, NULL, NULL, NULL, wall_pct, NULL, NULL, NULL
FROM classify_report
WHERE part = 'unknown' AND wall_pct >= 1 AND NOT EXISTS (FROM _unrecorded WHERE what = 'calls')
UNION ALL
SELECT
    NULL, NULL, NULL, CASE WHEN is_end THEN 'end' ELSE 'less' END, NULL, NULL, NULL, NULL, NULL, NULL,
    CASE WHEN NOT is_end THEN lost END, CASE WHEN NOT is_end THEN calls END, CASE WHEN is_end THEN lost END
FROM losses
