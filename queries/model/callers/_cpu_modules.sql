/*
description = "The files that CPU samples were in, with those of their callers."
[columns]
module = "The file, without its folder"
samples = "Samples that have it in their call chain"
*/
SELECT module, count(DISTINCT c.chain_id) AS samples
FROM (FROM facts.cpu_chains WHERE of = 'sample') AS c
JOIN facts.cpu_frames AS f USING (frame_id)
GROUP BY module;
