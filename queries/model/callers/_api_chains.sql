/*
description = "The call chains of CUDA calls, frame by frame."
[columns]
chain_id = "Id of the chain: callchain_id of `api_calls`; below zero for chains from Python"
depth = "0 is the innermost frame"
frame_id = "The frame, in `_api_frames`"
*/
SELECT c.id AS chain_id, least(greatest(c.stackDepth, 0), 65535)::USMALLINT AS depth, f.frame_id
FROM raw.CUDA_CALLCHAINS AS c
JOIN (FROM _api_frames WHERE line IS NULL) AS f ON f.symbol_id = c.symbol AND f.module_id = c.module
UNION ALL
SELECT chain_id, depth, frame_id FROM facts.python_frames;
