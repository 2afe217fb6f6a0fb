-- The process of the sampled steps, and when they begin and end on the host and on the GPU.
SELECT
    process_id, min(host_start_ns) AS host_from_ns, max(host_end_ns) AS host_to_ns, min(start_ns) AS gpu_from_ns,
    max(end_ns) AS gpu_to_ns, count(*) AS step_count
FROM internal.fusion_steps
GROUP BY process_id
