-- The NCCL kernels with the thread and time of their launch. A graph launch runs its kernels without NCCL calls, so
-- these have no thread.
SELECT
    k.process_id, k.device_id, gpu_of(k.process_id, k.device_id) AS gpu_id, k.stream_id, k.start_ns,
    greatest(k.start_ns, k.end_ns) AS end_ns, k.name_id,
    nullif(regexp_extract(n.name, 'nccl[A-Za-z]*Kernel_([A-Za-z]+)', 1), 'Generic') AS operation,
    CASE WHEN k.call_group = 'launch' THEN k.thread_id END AS thread_id, k.api_start_ns AS called_ns
FROM launches AS k
JOIN (FROM kernel_names WHERE provenance = 'NCCL') AS n USING (name_id)
