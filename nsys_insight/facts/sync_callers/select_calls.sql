-- Copies and memsets are included even if their call is in none of these groups. `is_call`: whether to count the call.
-- Calls inside other calls do not count.
CREATE OR REPLACE TABLE internal.chosen_calls AS
SELECT process_id, correlation_id, bool_or(is_call) AS is_call
FROM (
    SELECT
        process_id, correlation_id,
        coalesce(greatest(start_ns + 1, end_ns) > max(end_ns) OVER (
            PARTITION BY process_id, thread_id ORDER BY start_ns, end_ns DESC, api DESC, correlation_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), true) AS is_call
    FROM api_calls
    WHERE call_group IN ('sync', 'copy', 'memset', 'alloc', 'free', 'graph launch')
    UNION ALL
    SELECT process_id, correlation_id, false FROM memcpys
    UNION ALL
    SELECT process_id, correlation_id, false FROM memsets
)
WHERE correlation_id IS NOT NULL
GROUP BY ALL;
