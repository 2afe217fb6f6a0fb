CREATE VIEW os_calls AS
SELECT
    o.start AS start_ns,
    o."end" AS end_ns,
    duration(o.start, o."end") AS duration_ns,
    s.value AS name,
    pid_of(o.globalTid) AS process_id,
    tid_of(o.globalTid) AS thread_id
FROM raw.OSRT_API AS o
LEFT JOIN raw.StringIds AS s ON s.id = o.nameId;

COMMENT ON VIEW os_calls IS
    'Calls into the operating system''s runtime libraries that were long enough for nsys to record; only with '
    '-t osrt.';
COMMENT ON COLUMN os_calls.start_ns IS 'When the call began';
COMMENT ON COLUMN os_calls.end_ns IS 'When it returned';
COMMENT ON COLUMN os_calls.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN os_calls.name IS 'The function';
COMMENT ON COLUMN os_calls.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN os_calls.thread_id IS 'Operating system''s thread id';
