-- CUDA calls in time windows, the longest first. One row more than can be drawn shows that there are more.
WITH windows AS (
    SELECT unnest($starts)::BIGINT AS from_ns, unnest($ends)::BIGINT AS to_ns
)
SELECT c.process_id, c.thread_id, c.start_ns, c.end_ns, c.call_group, c.name, c.correlation_id
FROM outer_api_calls AS c
JOIN windows AS w ON c.start_ns < w.to_ns AND c.end_ns > w.from_ns
-- Most events are in no window. This cheap filter drops them before the join.
WHERE c.start_ns < list_max($ends) AND c.end_ns > list_min($starts)
ORDER BY c.duration_ns DESC, c.start_ns, c.process_id, c.thread_id, c.name, w.from_ns
LIMIT $max_rows + 1
