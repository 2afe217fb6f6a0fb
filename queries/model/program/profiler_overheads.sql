CREATE VIEW profiler_overheads AS
SELECT
    o.start AS start_ns,
    o."end" AS end_ns,
    duration(o.start, o."end") AS duration_ns,
    s.value AS name,
    pid_of(o.globalTid) AS process_id,
    tid_of(o.globalTid) AS thread_id
FROM raw.PROFILER_OVERHEAD AS o
LEFT JOIN raw.StringIds AS s ON s.id = o.nameId
WHERE is_program_overhead(s.value) IS NOT TRUE;

COMMENT ON VIEW profiler_overheads IS 'Time that the profiler itself took on the host: not caused by the application.';
COMMENT ON COLUMN profiler_overheads.start_ns IS 'When it began';
COMMENT ON COLUMN profiler_overheads.end_ns IS 'When it ended';
COMMENT ON COLUMN profiler_overheads.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN profiler_overheads.name IS 'What the profiler did';
COMMENT ON COLUMN profiler_overheads.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN profiler_overheads.thread_id IS 'Thread that was blocked';
