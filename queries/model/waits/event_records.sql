CREATE VIEW event_records AS
SELECT
    eventId AS event_id,
    deviceId AS device_id,
    streamId AS stream_id,
    contextId AS context_id,
    pid_of(globalPid) AS process_id,
    correlationId AS correlation_id
FROM raw.CUPTI_ACTIVITY_KIND_CUDA_EVENT;

COMMENT ON VIEW event_records IS 'One row per CUDA event that was recorded on a stream; not in every trace.';
COMMENT ON COLUMN event_records.event_id IS 'The event';
COMMENT ON COLUMN event_records.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN event_records.stream_id IS 'The stream that it was recorded on';
COMMENT ON COLUMN event_records.context_id IS 'CUDA context';
COMMENT ON COLUMN event_records.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN event_records.correlation_id IS
    'The call that recorded it: joins with `api_calls`, together with process_id';
