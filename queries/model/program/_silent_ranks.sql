/*
description = "Processes that may be ranks whose CUDA calls are not recorded."
[columns]
name = "Name of the executable"
*/
-- Processes that may be ranks whose CUDA calls are not recorded: they have the name of a process that runs NCCL, which
-- needs several ranks, but no CUDA call. Workers that load data look the same. A scope hides calls of the
-- others.
WITH nccl_processes AS (
    SELECT DISTINCT k.process_id
    FROM _operation_counts AS k
    SEMI JOIN (FROM kernel_names WHERE provenance = 'NCCL') AS n USING (name_id)
)
SELECT process_id, name
FROM processes
WHERE process_id NOT IN (SELECT process_id FROM _call_counts)
    AND name IN (SELECT name FROM processes SEMI JOIN nccl_processes USING (process_id))
    AND (SELECT count(*) FROM nccl_processes) = 1
    AND (
        SELECT coalesce(
            nvtx, steps, from_ns::VARCHAR, to_ns::VARCHAR, device_id::VARCHAR, process_id::VARCHAR, stream_id::VARCHAR
        ) IS NULL
        FROM scope
    );
