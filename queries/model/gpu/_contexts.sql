/*
description = """The CUDA contexts that the trace describes: the device of each, and its SMs if it is limited to some of
    the GPU's, as green contexts and instances of MIG are."""
[columns]
sm_count = "Streaming multiprocessors of the context; NULL if unknown"
*/
SELECT
    unnest(process_ids_of(c.processId)) AS process_id, c.contextId AS context_id, min(c.deviceId) AS device_id,
    min(coalesce(c.numMultiprocessors, d.numMultiprocessors)) AS sm_count
FROM raw.TARGET_INFO_CUDA_CONTEXT_INFO AS c
LEFT JOIN raw.TARGET_INFO_CUDA_DEVICE AS d ON d.pid = c.processId AND d.cudaId = c.deviceId
GROUP BY c.processId, c.contextId
HAVING count(DISTINCT c.deviceId) = 1;
