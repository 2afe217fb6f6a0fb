-- The times in which the profiler blocked threads.
SELECT thread_of(thread_id, process_id) AS thread, start_ns, end_ns
FROM _host_activity
WHERE kind = 'profiler' AND end_ns > start_ns AND thread_id IS NOT NULL
