/*
description = "One row per NVTX mark: an instant with a text."
[columns]
start_ns = "When the mark was set"
name = "Text of the mark"
thread_id = "Thread that set it"
*/
SELECT
    n.start AS start_ns, coalesce(n.text, s.value, '') AS name, pid_of(n.globalTid) AS process_id,
    tid_of(n.globalTid) AS thread_id
FROM raw.NVTX_EVENTS AS n
LEFT JOIN raw.StringIds AS s ON s.id = n.textId
WHERE n.eventType = 34;
