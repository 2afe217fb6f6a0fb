-- The process, and from when to when these steps go on.
SELECT process_id, min(host_start_ns), max(host_end_ns), min(start_ns), count(*)
FROM fusion_steps
GROUP BY process_id
