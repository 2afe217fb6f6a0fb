-- CUPTI writes 4294967295 for no stream and no event. nsys states device 0 for waits on any device, so the device is
-- that of the context where the trace describes contexts.
CREATE VIEW sync_events AS
SELECT
    start AS start_ns,
    "end" AS end_ns,
    duration(start, "end") AS duration_ns,
    syncType AS sync_type_id,
    coalesce(c.device_id, deviceId) AS device_id,
    CASE WHEN streamId < 4294967295 THEN streamId END AS stream_id,
    s.contextId AS context_id,
    CASE WHEN eventId < 4294967295 THEN eventId END AS event_id,
    pid_of(globalPid) AS process_id,
    correlationId AS correlation_id
FROM raw.CUPTI_ACTIVITY_KIND_SYNCHRONIZATION AS s
LEFT JOIN _contexts AS c ON c.process_id = pid_of(s.globalPid) AND c.context_id = s.contextId;

COMMENT ON VIEW sync_events IS 'One row per wait that CUPTI recorded, without the call that waited: `syncs` has it.';
COMMENT ON COLUMN sync_events.start_ns IS 'When the wait began';
COMMENT ON COLUMN sync_events.end_ns IS 'When it was over';
COMMENT ON COLUMN sync_events.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN sync_events.sync_type_id IS 'The number in the trace; `syncs` says what it means';
COMMENT ON COLUMN sync_events.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN sync_events.stream_id IS 'The stream waited for; NULL when it is none in particular';
COMMENT ON COLUMN sync_events.context_id IS 'CUDA context';
COMMENT ON COLUMN sync_events.event_id IS 'The event waited for';
COMMENT ON COLUMN sync_events.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN sync_events.correlation_id IS 'Joins with `api_calls`, together with process_id';
