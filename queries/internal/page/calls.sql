-- What the threads that launch do in a window: their CUDA calls, the longest if there are too many to draw.
SELECT process_id, thread_id, start_ns, end_ns, call_group, name
FROM outer_api_calls
WHERE start_ns < $to_ns AND end_ns > $from_ns
ORDER BY duration_ns DESC, start_ns, process_id, thread_id, name
LIMIT $most + 1
