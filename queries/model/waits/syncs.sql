/*
description = """One row per synchronization that CUPTI recorded. Not every waiting call has one (cudaDeviceSynchronize
    seldom does), and a poll (cudaStreamQuery, cudaEventQuery) has one but does not wait: to count waits, use
    `api_calls` with call_group sync."""
[columns]
start_ns = "When the wait began"
end_ns = "When the wait ended"
sync_type = "What was waited for: stream, event, context, stream wait (on the GPU), unknown; poll: nothing"
api_name = "The call that waited"
stream_id = "The stream waited for; NULL when it is none in particular"
event_id = "The event waited for"
thread_id = "Thread that waited"
*/
-- The number in syncType is not reliable: nsys 2021 to 2024 counts 1 = context, 2 = event, 3 = stream, and 2025 counts
-- 2 = stream, 4 = context, while the enum table in the same file disagrees. The call that waited is known for nearly
-- every row, so its name decides, and the number is the last resort. nsys leaves out the API rows of cudaStreamQuery
-- unless --cuda-trace-all-apis is given, but not those of calls that wait for a stream.
SELECT
    y.start_ns,
    y.end_ns,
    y.duration_ns,
    CASE
        WHEN a.name LIKE '%Query' OR (c.process_id IS NULL AND v.is_new AND y.sync_type_id = 2 AND t.has_calls)
            THEN 'poll'
        WHEN a.name LIKE '%StreamSynchronize' THEN 'stream'
        WHEN a.name LIKE '%EventSynchronize' THEN 'event'
        WHEN a.name LIKE '%StreamWaitEvent' THEN 'stream wait'
        WHEN a.name SIMILAR TO '.*(Device|Ctx|Thread)Synchronize' THEN 'context'
        WHEN v.is_new AND y.sync_type_id IN (2, 3) THEN 'stream'
        WHEN v.is_new AND y.sync_type_id = 4 THEN 'context'
        WHEN v.is_new AND y.sync_type_id = 1 THEN 'event'
        WHEN y.sync_type_id = 1 THEN 'context'
        WHEN y.sync_type_id = 2 THEN 'event'
        WHEN y.sync_type_id = 3 THEN 'stream'
        ELSE 'unknown'
    END AS sync_type,
    a.name AS api_name,
    y.device_id,
    y.stream_id,
    y.context_id,
    y.event_id,
    y.process_id,
    a.thread_id,
    y.correlation_id
FROM sync_events AS y
LEFT JOIN api_calls AS a ON a.process_id = y.process_id AND a.correlation_id = y.correlation_id
-- A scope may leave out the call that waited. That does not make the row a poll.
LEFT JOIN (
    SELECT DISTINCT pid_of(globalTid) AS process_id, correlationId AS correlation_id
    FROM unscoped.CUPTI_ACTIVITY_KIND_RUNTIME
    SEMI JOIN (SELECT correlationId FROM raw.CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) USING (correlationId)
) AS c ON c.process_id = y.process_id AND c.correlation_id = y.correlation_id
-- Schema 3.17 introduced both this column and the new numbers.
CROSS JOIN (
    SELECT coalesce(min(CASE WHEN name = 'EXPORT_SCHEMA_VERSION_MAJOR' THEN try_cast(value AS BIGINT) * 1000 END)
        + min(CASE WHEN name = 'EXPORT_SCHEMA_VERSION_MINOR' THEN try_cast(value AS BIGINT) END) >= 3017,
        false) AS is_new
    FROM raw.META_DATA_EXPORT WHERE name LIKE 'EXPORT_SCHEMA_VERSION_M%OR'
) AS v
CROSS JOIN (SELECT count(*) > 0 AS has_calls FROM (SELECT 1 FROM unscoped.CUPTI_ACTIVITY_KIND_RUNTIME LIMIT 1)) AS t;
