CREATE VIEW threads AS
SELECT pid_of(t.globalTid) AS process_id, tid_of(t.globalTid) AS thread_id, min(s.value) AS name
FROM raw.ThreadNames AS t
LEFT JOIN raw.StringIds AS s ON s.id = t.nameId
GROUP BY ALL;

COMMENT ON VIEW threads IS 'Threads that nsys saw.';
COMMENT ON COLUMN threads.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN threads.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN threads.name IS 'The thread''s name';
