-- The process, and from when to when these steps go on, on the host and on the GPU.
SELECT process_id, min(host_start_ns), max(host_end_ns), min(start_ns), max(end_ns), count(*)
FROM fusion_steps
GROUP BY process_id
