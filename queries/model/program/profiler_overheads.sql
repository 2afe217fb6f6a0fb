/*
description = "Time that the profiler itself took on the host: not caused by the application."
[columns]
start_ns = "When the overhead began"
end_ns = "When the overhead ended"
name = "What the profiler did"
thread_id = "Thread that was blocked"
*/
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
