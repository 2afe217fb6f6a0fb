/*
description = "What a process that communicates ran on its GPU other than NCCL kernels."
stored = true
[columns]
gpu_id = "The GPU"
start_ns = "When the operation started on the GPU"
end_ns = "When the operation ended on the GPU"
*/
-- The work of a process that communicates on its GPU, other than NCCL kernels.
SELECT process_id, gpu_id, start_ns, end_ns
FROM _gpu_work
WHERE end_ns > start_ns
    AND (name_id IS NULL OR name_id NOT IN (SELECT name_id FROM kernel_names WHERE provenance = 'NCCL'))
    AND (process_id, gpu_id) IN (SELECT process_id, gpu_id FROM _rank_collectives);
