CREATE VIEW _cpu_modules AS
SELECT module, count(DISTINCT c.chain_id) AS samples
FROM (FROM facts.cpu_chains WHERE of = 'sample') AS c
JOIN facts.cpu_frames AS f USING (frame_id)
GROUP BY module;

COMMENT ON VIEW _cpu_modules IS 'The files that CPU samples were in, with those of their callers.';
COMMENT ON COLUMN _cpu_modules.module IS 'The file, without its folder';
COMMENT ON COLUMN _cpu_modules.samples IS 'Samples that have it in their call chain';
