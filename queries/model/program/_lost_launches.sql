/*
description = "How many of the launch calls of a trace have no kernel in it; no calls where there are enough kernels."
[columns]
calls = "Launch calls that succeeded"
lost = "Those whose kernel is not in the trace"
lost_at_end = "Those after the last call of the process whose kernel is"
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
)
SELECT
    count(*) AS calls,
    count(*) FILTER (is_lost) AS lost,
    count(*) FILTER (is_lost AND start_ns > last_ns) AS lost_at_end
FROM launch_calls;
