-- Whether several processes or GPUs run NCCL kernels. Names are checked first: most programs have no NCCL kernels.
SELECT count(*) > 1 AS has_ranks
FROM (
    SELECT DISTINCT process_id, device_id FROM kernel_events
    WHERE name_id IN (SELECT name_id FROM kernel_names WHERE provenance = 'NCCL')
)
