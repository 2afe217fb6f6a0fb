/*
code = "NSI901"
title = "The capture is incomplete"
family = "capture"
severity = "warning"
meaning = """
nsys lost events or could not record them: counts are lower bounds, and the GPU may appear idle where it was not."""
evidence = [
    "{message}",
    "for {unknown_pct} of the wall time, the launch call that ended the gap is not in the trace",
    """{lost_launches} of {launch_calls:launch call} ran no kernel that is in the trace: kernels are missing, and the
    GPU appears idle while they ran""",
]
caveat = """
What was lost is outside the part that you look at."""
effort = "flag"
links = ["Nsight Systems User Guide, Troubleshooting"]
report = "info"

[cure]
any = """
Capture less at a time (--capture-range=cudaProfilerApi, --duration, fewer -t options), and let the program exit on
its own."""

[params.least_pct]
default = 1.0
help = "Share of the launch calls without recorded kernels from which this is reported (1: less changes no share)"
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
            FROM scope
            WHERE coalesce(
                nvtx, steps, from_ns::VARCHAR, to_ns::VARCHAR, device_id::VARCHAR, process_id::VARCHAR,
                stream_id::VARCHAR
            ) IS NULL
        )
),
messages AS (
    SELECT string_agg(DISTINCT text, ' ' ORDER BY text) AS message
    FROM (SELECT left(regexp_replace(trim(message), '\s+', ' ', 'g'), 300) AS text FROM diagnostics WHERE is_cuda_loss)
    HAVING count(*) > 0
    UNION ALL
    SELECT sentence FROM _unrecorded
)
SELECT
    NULL AS recoverable_ns, NULL::DOUBLE AS wall_pct, NULL AS place,
    message, NULL::DOUBLE AS unknown_pct, NULL::BIGINT AS lost_launches, NULL::BIGINT AS launch_calls
FROM messages
UNION ALL
SELECT NULL, wall_pct, NULL, NULL, wall_pct, NULL, NULL
FROM classify_report
WHERE part = 'unknown' AND wall_pct >= 1 AND NOT EXISTS (FROM _unrecorded WHERE what = 'calls')
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, s.calls - l.kernels, s.calls
FROM (SELECT count(*) AS calls FROM outer_api_calls SEMI JOIN suspect_calls USING (name) WHERE return_value = 0) AS s,
    launched_kernels AS l
WHERE 100 * (s.calls - l.kernels) >= $least_pct * s.calls AND s.calls > 0
