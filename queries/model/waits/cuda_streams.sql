/*
description = "CUDA streams that existed, including unused ones."
[columns]
priority = "Lower is more urgent"
stream_name = "Name that the program gives to it with NVTX; NULL without"
stream_type = "default stream, non-blocking stream, null stream"
*/
SELECT DISTINCT
    unnest(process_ids_of(t.processId)) AS process_id, t.contextId AS context_id, t.streamId AS stream_id,
    -- nsys writes a negative priority without its sign: -5 is 4294967291.
    CASE WHEN t.priority >= 2147483648 THEN t.priority - 4294967296 ELSE t.priority END AS priority,
    n.name AS stream_name,
    e.word AS stream_type
FROM raw.TARGET_INFO_CUDA_STREAM AS t
LEFT JOIN raw.TARGET_INFO_NVTX_CUDA_STREAM AS n USING (processId, contextId, streamId)
LEFT JOIN facts.enum_words AS e ON e.enum = 'stream type' AND e.id = t.flag;
