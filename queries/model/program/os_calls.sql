/*
description = """Calls into the operating system's runtime libraries that were long enough for nsys to record; only with
    -t osrt."""
[columns]
start_ns = "When the call began"
end_ns = "When the call returned"
name = "The function"
*/
SELECT
    o.start AS start_ns,
    o."end" AS end_ns,
    duration(o.start, o."end") AS duration_ns,
    s.value AS name,
    pid_of(o.globalTid) AS process_id,
    tid_of(o.globalTid) AS thread_id
FROM raw.OSRT_API AS o
LEFT JOIN raw.StringIds AS s ON s.id = o.nameId;
