-- The samples of these threads.
SELECT c.start + l.shift_ns AS line_start, c.start + l.shift_ns + 1 AS line_end, c.id
FROM unscoped.COMPOSITE_EVENTS AS c
JOIN internal.work_tracks AS l ON l.thread = thread_of(tid_of(c.globalTid), pid_of(c.globalTid))
WHERE c.start >= l.from_ns AND c.start < l.to_ns
