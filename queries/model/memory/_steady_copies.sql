/*
description = """What was copied in the steady steps, one row per kind, memories and call; in the whole scope where
    there are no steps."""
[columns]
copy_kind = "Direction of the copy, as in `memcpys`"
source_memory = "Memory that was read"
target_memory = "Memory that was written"
name = "The API call; NULL where it is not in the trace"
calls = "How many began in these steps"
total_ns = "Sum of their durations"
avg_bytes = "Mean size"
bandwidth_bytes_per_s = "Bandwidth: bytes over durations"
*/
WITH copies AS (
    SELECT m.copy_kind, m.source_memory, m.target_memory, m.duration_ns, m.size_bytes, m.process_id, m.correlation_id
    FROM memcpys AS m ASOF JOIN _steady_windows AS o ON o.start_ns <= m.start_ns
    WHERE m.start_ns < o.end_ns
),
calls AS (
    SELECT process_id, correlation_id, min(name) AS name
    FROM api_calls
    WHERE call_group IN ('copy', 'graph launch')
    GROUP BY ALL
)
SELECT
    c.copy_kind, c.source_memory, c.target_memory, a.name,
    count(*) AS calls, sum(c.duration_ns)::BIGINT AS total_ns, avg(c.size_bytes) AS avg_bytes,
    1e9 * sum(c.size_bytes)::BIGINT / nullif(sum(c.duration_ns), 0)::BIGINT AS bandwidth_bytes_per_s
FROM copies AS c
LEFT JOIN calls AS a USING (process_id, correlation_id)
GROUP BY ALL;
