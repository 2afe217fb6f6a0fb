CREATE VIEW file_accesses AS
SELECT
    e.startedAt AS start_ns, e.endedAt AS end_ns, duration(e.startedAt, e.endedAt) AS duration_ns, d.filePath AS name,
    coalesce(t.label, 'type ' || e.eventType) AS operation, e.bytesProcessed AS size_bytes
FROM raw.OSRT_FILE_ACCESS_EVENTS AS e
LEFT JOIN raw.OSRT_FILE_ACCESS_DESCRIPTORS AS d USING (fileAccessId)
LEFT JOIN raw.ENUM_OSRT_FILE_ACCESS_EVENT_TYPE AS t ON t.id = e.eventType;

COMMENT ON VIEW file_accesses IS 'One row per access to a file; only with --osrt-file-access=true.';
COMMENT ON COLUMN file_accesses.start_ns IS 'When it began';
COMMENT ON COLUMN file_accesses.end_ns IS 'When it ended';
COMMENT ON COLUMN file_accesses.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN file_accesses.name IS 'Path of the file; NULL where not recorded';
COMMENT ON COLUMN file_accesses.operation IS 'What was done, in nsys''s words';
COMMENT ON COLUMN file_accesses.size_bytes IS 'Bytes read or written';
