-- NVTX ranges that are open in time windows, the outer ranges first.
WITH windows AS (
    SELECT unnest($starts)::BIGINT AS from_ns, unnest($ends)::BIGINT AS to_ns
)
SELECT r.process_id, r.thread_id, r.depth, r.start_ns, coalesce(r.end_ns, w.to_ns) AS end_ns, r.name
FROM nvtx_nesting AS r
JOIN windows AS w ON r.start_ns < w.to_ns AND coalesce(r.end_ns, w.to_ns) > w.from_ns
WHERE r.depth <= $max_depth AND r.style = 'push/pop'
ORDER BY r.depth, r.duration_ns DESC, r.start_ns, r.process_id, r.thread_id, r.name, w.from_ns
LIMIT $max_rows + 1
