-- A copy, too, whose call is not among these.
CREATE OR REPLACE TABLE internal.chosen_calls AS
SELECT process_id, correlation_id, bool_or(is_call) AS is_call
FROM (
    SELECT process_id, correlation_id, true AS is_call
    FROM api_calls
    WHERE call_group IN ('sync', 'copy', 'memset', 'alloc', 'free', 'graph launch')
    UNION ALL
    SELECT process_id, correlation_id, false FROM memcpys
    UNION ALL
    SELECT process_id, correlation_id, false FROM memsets
)
WHERE correlation_id IS NOT NULL
GROUP BY ALL;
