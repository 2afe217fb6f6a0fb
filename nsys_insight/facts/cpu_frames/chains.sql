INSERT INTO facts.cpu_chains BY NAME
SELECT $owner AS of, c.id AS chain_id, least(greatest(c.stackDepth, 0), 65535) AS depth, f.frame_id
FROM raw.SAMPLING_CALLCHAINS AS c
JOIN facts.cpu_frames AS f ON f.symbol_id = c.symbol AND f.module_id = c.module;
