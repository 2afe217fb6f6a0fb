/*
title = "The capture is not complete"
family = "capture"
severity = "warning"
meaning = """
nsys lost events or could not record them, so counts and times are lower bounds."""
action = """
Capture less at a time (--capture-range=cudaProfilerApi, --duration, fewer of -t), and let the program end by itself."""
caveat = """
What was lost lies outside of the part that you look at."""
report = "info"

[params.least_pct]
default = 1.0
help = "Share of the launch calls whose kernels are missing from which on it is said (1: what is less changes no share)"
*/
SELECT NULL AS recoverable_ns, NULL AS wall_pct, NULL AS place,
    string_agg(DISTINCT left(regexp_replace(trim(message), '\s+', ' ', 'g'), 300), ' ' ORDER BY left(regexp_replace(trim(message), '\s+', ' ', 'g'), 300)) AS evidence
FROM diagnostics
WHERE is_cuda_loss
HAVING count(*) > 0
UNION ALL
SELECT NULL, NULL, NULL, sentence FROM _unrecorded
UNION ALL
SELECT NULL, wall_pct, NULL, 'the launch calls of what ended ' || share_text(wall_pct) || ' of the wall are not in the trace'
FROM classify_report
WHERE part = 'unknown' AND wall_pct >= 1 AND NOT EXISTS (FROM _unrecorded WHERE what = 'calls')
UNION ALL
-- A launch that is captured into a graph runs nothing itself.
SELECT NULL, NULL, NULL,
    l.calls - k.launched || ' of ' || counted_text(l.calls, 'launch call') || ' ran nothing that is in the trace: kernels are missing, and in their time the GPU seems idle'
FROM (SELECT count(*) AS calls FROM outer_api_calls WHERE call_group = 'launch' AND return_value = 0) AS l,
    (SELECT coalesce(sum(called), 0) AS launched FROM _operation_counts WHERE kind = 'kernel') AS k
WHERE 100 * (l.calls - k.launched) >= $least_pct * l.calls AND l.calls > 0
    AND NOT EXISTS (FROM _call_counts WHERE call_group IN ('graph', 'graph launch'))
    AND NOT EXISTS (FROM _unrecorded WHERE what = 'kernels')
    AND EXISTS (FROM scope WHERE coalesce(nvtx, from_ns::VARCHAR, to_ns::VARCHAR, device_id::VARCHAR, process_id::VARCHAR, stream_id::VARCHAR) IS NULL)
