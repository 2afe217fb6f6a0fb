-- The API calls of the whole trace, each with its thread as one number and what it does: 0 waits, 1 copies, 2 allocates, 3 all
-- else. A call may be inside another one; one without a correlation id launched nothing.
SELECT
    call_of(correlation_id, process_id) AS call, thread_of(thread_id, process_id) AS thread, start_ns, coalesce(end_ns, start_ns) AS end_ns,
    CASE
        WHEN call_of(correlation_id, process_id) IN (SELECT call_of(correlation_id, process_id) FROM _blocking_copies) THEN 1
        WHEN name_id IN (SELECT name_id FROM _api_names WHERE call_group = 'sync') THEN 0
        WHEN name_id IN (SELECT name_id FROM _api_names WHERE call_group IN ('alloc', 'free')) THEN 2
        ELSE 3
    END::UTINYINT AS host
FROM _host_activity
WHERE kind = 'api' AND thread_id IS NOT NULL AND start_ns IS NOT NULL
