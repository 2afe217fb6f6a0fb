-- The API calls of the unscoped trace, each with its thread as one number and its kind: 0 waits, 1 copies, 2 allocates
-- or frees, 3 anything else; 4 is an MPI call. A call may be inside another one. A call without a correlation id
-- launched nothing.
SELECT
    call_of(a.correlation_id, a.process_id) AS call, a.correlation_id, thread_of(a.thread_id, a.process_id) AS thread,
    a.start_ns,
    coalesce(a.end_ns, a.start_ns) AS end_ns,
    (CASE WHEN a.kind = 'mpi' THEN 4 WHEN b.call IS NOT NULL THEN 1 ELSE coalesce(n.host, 3) END)::UTINYINT AS host
FROM _host_activity AS a
LEFT JOIN (SELECT DISTINCT call_of(correlation_id, process_id) AS call FROM _blocking_copies) AS b
    ON b.call = call_of(a.correlation_id, a.process_id)
LEFT JOIN (
    SELECT name_id, CASE WHEN call_group = 'sync' THEN 0 ELSE 2 END AS host
    FROM _api_names
    WHERE call_group IN ('sync', 'alloc', 'free')
) AS n ON n.name_id = a.name_id
WHERE a.kind IN ('api', 'mpi') AND a.thread_id IS NOT NULL AND a.start_ns IS NOT NULL
