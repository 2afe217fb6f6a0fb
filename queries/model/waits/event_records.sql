/*
description = "One row per CUDA event that was recorded on a stream; not in every trace."
[columns]
event_id = "The event"
stream_id = "The stream that it was recorded on"
correlation_id = "The call that recorded it: joins with `api_calls`, together with process_id"
*/
SELECT
    eventId AS event_id,
    deviceId AS device_id,
    streamId AS stream_id,
    contextId AS context_id,
    pid_of(globalPid) AS process_id,
    correlationId AS correlation_id
FROM raw.CUPTI_ACTIVITY_KIND_CUDA_EVENT;
