-- The NVTX ranges that are open in a window, the outer ones first.
SELECT process_id, thread_id, depth, start_ns, coalesce(end_ns, $to_ns) AS end_ns, name
FROM nvtx_nesting
WHERE start_ns < $to_ns AND coalesce(end_ns, $to_ns) > $from_ns AND depth <= $deepest
ORDER BY depth, duration_ns DESC, start_ns, process_id, thread_id, name
LIMIT $most + 1
