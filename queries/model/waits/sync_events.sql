/*
description = "One row per wait that CUPTI recorded, without the call that waited: `syncs` has it."
[columns]
start_ns = "When the wait began"
end_ns = "When the wait ended"
sync_type_id = "The number in the trace; `syncs` says what it means"
stream_id = "The stream waited for; NULL when it is none in particular"
event_id = "The event waited for"
*/
-- CUPTI writes 4294967295 for no stream and no event. nsys states device 0 for waits on any device, so the device is
-- that of the context where the trace describes contexts.
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
