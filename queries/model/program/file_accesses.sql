/*
description = "One row per access to a file; only with --osrt-file-access=true."
[columns]
start_ns = "When the access began"
end_ns = "When the access ended"
name = "Path of the file; NULL where not recorded"
operation = "What was done, in nsys's words"
size_bytes = "Bytes read or written"
*/
SELECT
    e.startedAt AS start_ns, e.endedAt AS end_ns, duration(e.startedAt, e.endedAt) AS duration_ns, d.filePath AS name,
    coalesce(t.label, 'type ' || e.eventType) AS operation, e.bytesProcessed AS size_bytes
FROM raw.OSRT_FILE_ACCESS_EVENTS AS e
LEFT JOIN raw.OSRT_FILE_ACCESS_DESCRIPTORS AS d USING (fileAccessId)
LEFT JOIN raw.ENUM_OSRT_FILE_ACCESS_EVENT_TYPE AS t ON t.id = e.eventType;
