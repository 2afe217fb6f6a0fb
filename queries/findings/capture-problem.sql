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
        """{?has_failed_kernel}{transfers:copy or memset call}< and {unrecorded_calls:launch call}> returned success,
        but nothing that ran on the GPU is in the trace: a kernel failed (error {kernel_error}), after which nsys could
        not read the rows of its context""",
        """{?lacks_kernels}{transfers:copy or memset call}< and {unrecorded_calls:launch call}> returned success, but
        nothing that ran on the GPU is in the trace: the profiler lost it, or could not record it""",
        """{?lacks_kernels}{unrecorded_calls:launch call} {#unrecorded_calls:is|are} in the trace, but no kernels: the
        profiler lost what ran on the GPU, or could not record it""",
        """{?lacks_copies}{unrecorded_calls:copy call} {#unrecorded_calls:is|are} in the trace, but no copies: the time
        of copies on the GPU counts as idle time""",
    ],
    "nsys failed to process some of the events that it had recorded: {failures}",
    "{?is_wsl}a driver of Windows under Linux: the program ran under WSL2",
    "what the trace shows of the {wall_ns} from the first call to the last one: {longest_calls}",
    "for {unknown_pct} of the wall time, the launch call that ended the gap is not in the trace",
    """{lost_launches} of {launch_calls:launch call} ran no kernel that is in the trace: kernels are missing, and the
    GPU appears idle while they ran""",
    "{cut_launches:launch call} at the end ran no kernel that is in the trace: the capture ended first",
    """{unseen_steps} of {steps:step} begin after the last CUDA call in the trace, the last one {unseen_ns} after it:
    what they did is not recorded""",
    """after step {last_step} a thread that launched in each step before has no calls: from there on, figures are of a
    part of the work""",
]
skip_if = "What was lost is outside the part that you look at."
effort = "flag"
links = ["Nsight Systems User Guide, Troubleshooting"]
report = "info"
when = """
SELECT 1 FROM diagnostics
WHERE is_cuda_loss OR message LIKE '%driver version%not supported%' OR message LIKE 'Error when processing events%'
UNION ALL
SELECT 1 FROM _unrecorded
UNION ALL
SELECT 1 FROM classify_report WHERE part = 'unknown' AND wall_pct >= 1
UNION ALL
SELECT 1 FROM (SELECT sum(calls) AS launches FROM _call_counts WHERE call_group = 'launch')
WHERE launches > coalesce((SELECT sum(called) FROM _operation_counts WHERE kind = 'kernel'), 0)
UNION ALL
SELECT 1 FROM steps WHERE phase = 'tail' AND launch_calls = 0"""

[items]
longest_calls = ["{call_ns} in {call_name}"]

[fix.wsl]
any = """
Use a newer nsys and a newer driver of Windows: older ones do not record the GPU under WSL2. Or build the program for
Windows, and profile it with nsys of Windows."""

[fix.nothing]
any = """
Use a newer nsys, one that supports the CUDA version of the driver, which nvidia-smi shows, and let the program exit on
its own."""

[fix.failed]
any = "Mend the failing kernel first (see the error of the call), and record again."

[fix.less]
any = """
Capture less at a time (--capture-range=cudaProfilerApi, --duration, fewer -t options), and let the program exit on
its own."""

[fix.start]
any = """
Run the program without nsys to see that it uses the GPU. If only forked processes do, capture with
--trace-fork-before-exec=true, and call cudaProfilerStop in them before they end; or let Python spawn them. Else use an
nsys that supports the CUDA version of the driver, which nvidia-smi shows."""

[fix.driver]
any = "Update nsys: record with a version that supports the CUDA version of the driver."

[fix.processing]
any = "Record with fewer -t options, first without nvtx, or with a newer nsys."

[fix.end]
any = """
Wait for the GPU before the capture ends: call cudaDeviceSynchronize() before cudaProfilerStop(), or capture for
longer."""

[params]
min_pct = [1.0,
    "Share of the launch calls without recorded kernels from which this is reported (1: less changes no share)"]
end_pct = [95.0,
    "Share of these calls after the last one that ran from which the end is reported as the cause (95: nearly all)"]
*/
WITH losses AS (
    SELECT calls, lost, 100 * lost_at_end >= $end_pct * lost AS is_end
    FROM _lost_launches WHERE 100 * lost >= $min_pct * calls AND calls > 0
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
    SELECT string_agg(DISTINCT text, ' ' ORDER BY text) AS message, NULL AS what, NULL AS calls, NULL AS transfers
    FROM messages HAVING count(*) > 0
    UNION ALL
    SELECT NULL, what, calls, transfers FROM _unrecorded
),
-- All of the wall time, if no kernel is recorded.
unseen_times AS MATERIALIZED (
    SELECT NULL::BIGINT AS from_ns, NULL::BIGINT AS until_ns, sum(duration_ns)::BIGINT AS wall_ns
    FROM wall WHERE EXISTS (FROM _unrecorded WHERE what = 'kernels') HAVING count(*) > 0
)
SELECT
    NULL AS recoverable_ns, NULL::DOUBLE AS wall_pct, NULL AS place,
    coalesce(
        (SELECT min(cure) FROM messages),
        CASE
            WHEN what IS DISTINCT FROM 'kernels' THEN 'less'
            WHEN EXISTS (FROM _failed_kernel) THEN 'failed'
            WHEN (SELECT is_wsl FROM _capture_settings) THEN 'wsl'
            -- If nothing at all was recorded, it was not too much.
            WHEN NOT EXISTS (FROM _operation_counts) THEN 'nothing'
            ELSE 'less'
        END
    ) AS cure_case,
    what = 'kernels' AND (SELECT is_wsl FROM _capture_settings) AS is_wsl,
    CASE WHEN what = 'kernels' THEN t.wall_ns END AS wall_ns,
    list_filter(c.longest_calls, lambda call: 100 * call.call_ns >= t.wall_ns) AS longest_calls,
    message, what = 'calls' AS lacks_calls,
    what = 'kernels' AND EXISTS (FROM _failed_kernel) AS has_failed_kernel,
    CASE WHEN what = 'kernels' THEN (SELECT error FROM _failed_kernel) END AS kernel_error,
    what = 'kernels' AS lacks_kernels, what = 'copies' AS lacks_copies,
    calls AS unrecorded_calls, transfers, NULL::DOUBLE AS unknown_pct,
    NULL::BIGINT AS lost_launches, NULL AS launch_calls, NULL AS cut_launches
FROM problems LEFT JOIN unseen_times AS t ON true CROSS JOIN _calls_in('unseen_times') AS c
UNION ALL BY NAME
SELECT wall_pct, 'less' AS cure_case, wall_pct AS unknown_pct
FROM classify_report
WHERE part = 'unknown' AND wall_pct >= 1 AND NOT EXISTS (FROM _unrecorded WHERE what = 'calls')
UNION ALL BY NAME
SELECT
    CASE WHEN is_end THEN 'end' ELSE 'less' END AS cure_case, CASE WHEN NOT is_end THEN lost END AS lost_launches,
    CASE WHEN NOT is_end THEN calls END AS launch_calls, CASE WHEN is_end THEN lost END AS cut_launches
FROM losses
UNION ALL BY NAME
SELECT 'processing' AS cure_case, failures FROM _processing_failures
UNION ALL BY NAME
SELECT 'less' AS cure_case, unseen AS unseen_steps, steps, unseen_ns, last_step FROM _unseen_steps
