CREATE VIEW _api_chains AS
SELECT c.id AS chain_id, least(greatest(c.stackDepth, 0), 65535)::USMALLINT AS depth, f.frame_id
FROM raw.CUDA_CALLCHAINS AS c
JOIN (FROM facts.api_frames WHERE line IS NULL) AS f ON f.symbol_id = c.symbol AND f.module_id = c.module
UNION ALL
SELECT chain_id, depth, frame_id FROM facts.python_frames;

COMMENT ON VIEW _api_chains IS 'The call chains of CUDA calls, frame by frame.';
COMMENT ON COLUMN _api_chains.chain_id IS
    'Id of the chain: callchain_id of `api_calls`; below zero for chains from Python';
COMMENT ON COLUMN _api_chains.depth IS '0 is the innermost frame';
COMMENT ON COLUMN _api_chains.frame_id IS 'The frame, in facts.api_frames';
