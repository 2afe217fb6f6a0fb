INSERT INTO facts.chain_frames BY NAME
SELECT $of AS of, c.id AS chain_id, least(greatest(c.stackDepth, 0), 65535) AS depth, f.frame_id
FROM raw.CUDA_CALLCHAINS AS c
JOIN facts.frames AS f ON f.symbol_id = c.symbol AND f.module_id = c.module;
