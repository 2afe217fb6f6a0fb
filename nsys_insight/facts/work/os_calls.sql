-- The operating system calls of these threads.
SELECT
    greatest(a.start_ns, l.from_ns) + l.shift_ns AS line_start, least(a.end_ns, l.to_ns) + l.shift_ns AS line_end,
    a.name_id AS id
FROM (FROM _host_activity WHERE kind = 'os' AND end_ns > start_ns) AS a
JOIN internal.work_tracks AS l ON l.thread = thread_of(a.thread_id, a.process_id)
WHERE a.end_ns > l.from_ns AND a.start_ns < l.to_ns
