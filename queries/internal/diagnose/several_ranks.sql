-- Whether several processes or GPUs communicate.
SELECT count(*) > 1 AS has_ranks FROM (SELECT DISTINCT process_id, device_id FROM _rank_collectives)
