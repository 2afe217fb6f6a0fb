-- The operations that were launched in a period.
SELECT
    token, shape::INTEGER AS shape, host_ns, start_ns, end_ns, gpu_ns, coalesce(stream_id, -1) AS stream_id,
    coalesce(is_result, false) AS is_result
FROM internal.loop_sequence
WHERE ($from_ns IS NULL OR host_ns >= $from_ns) AND ($to_ns IS NULL OR host_ns < $to_ns)
