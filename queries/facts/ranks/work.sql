-- What a rank ran on its GPU beside the kernels of NCCL.
SELECT start_ns, end_ns
FROM _gpu_work
WHERE process_id = $process AND gpu_id = $gpu AND end_ns > start_ns
    AND (name_id IS NULL OR name_id NOT IN (SELECT name_id FROM kernel_names WHERE provenance = 'NCCL'))
