-- The number in syncType is not reliable: nsys 2021 to 2024 counts 1 = context, 2 = event, 3 = stream, and 2025 counts
-- 2 = stream, 4 = context, while the enum table in the same file disagrees. The call that waited is known for nearly
-- every row, so its name decides, and the number is the last resort.
CREATE VIEW syncs AS
SELECT
    y.start_ns,
    y.end_ns,
    y.duration_ns,
    CASE
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
-- Schema 3.17 introduced both this column and the new numbers.
CROSS JOIN (
    SELECT coalesce(min(CASE WHEN name = 'EXPORT_SCHEMA_VERSION_MAJOR' THEN try_cast(value AS BIGINT) * 1000 END)
        + min(CASE WHEN name = 'EXPORT_SCHEMA_VERSION_MINOR' THEN try_cast(value AS BIGINT) END) >= 3017,
        false) AS is_new
    FROM raw.META_DATA_EXPORT WHERE name LIKE 'EXPORT_SCHEMA_VERSION_M%OR'
) AS v;

COMMENT ON VIEW syncs IS
    'One row per wait that CUPTI recorded. Not every waiting call has one (cudaDeviceSynchronize seldom does): to '
    'count waits, use `api_calls` with call_group sync.';
COMMENT ON COLUMN syncs.start_ns IS 'When the wait began';
COMMENT ON COLUMN syncs.end_ns IS 'When it was over';
COMMENT ON COLUMN syncs.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN syncs.sync_type IS 'What was waited for: stream, event, context, stream wait (on the GPU), unknown';
COMMENT ON COLUMN syncs.api_name IS 'The call that waited';
COMMENT ON COLUMN syncs.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN syncs.stream_id IS 'The stream waited for; NULL when it is none in particular';
COMMENT ON COLUMN syncs.context_id IS 'CUDA context';
COMMENT ON COLUMN syncs.event_id IS 'The event waited for';
COMMENT ON COLUMN syncs.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN syncs.thread_id IS 'Thread that waited';
COMMENT ON COLUMN syncs.correlation_id IS 'Joins with `api_calls`, together with process_id';
