-- The NCCL kernels. The name contains the operation, except for generic kernels.
SELECT
    k.process_id, k.device_id, gpu_of(k.process_id, k.device_id) AS gpu_id, k.stream_id, k.start_ns,
    greatest(k.start_ns, k.end_ns) AS end_ns, k.name_id,
    nullif(regexp_extract(n.name, 'nccl[A-Za-z]*Kernel_([A-Za-z]+)', 1), 'Generic') AS operation
FROM kernel_events AS k
JOIN (FROM kernel_names WHERE provenance = 'NCCL') AS n USING (name_id)
