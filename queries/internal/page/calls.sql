-- What the threads that launch do in windows of time: their CUDA calls, the longest if there are too many to draw.
WITH windows AS (
    SELECT unnest($starts)::BIGINT AS from_ns, unnest($ends)::BIGINT AS to_ns
)
SELECT c.process_id, c.thread_id, c.start_ns, c.end_ns, c.call_group, c.name
FROM outer_api_calls AS c
JOIN windows AS w ON c.start_ns < w.to_ns AND c.end_ns > w.from_ns
-- Most are in no window, and need not be compared with each.
WHERE c.start_ns < list_max($ends) AND c.end_ns > list_min($starts)
ORDER BY c.duration_ns DESC, c.start_ns, c.process_id, c.thread_id, c.name, w.from_ns
LIMIT $most + 1
