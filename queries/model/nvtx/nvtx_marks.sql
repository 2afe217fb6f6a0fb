CREATE VIEW nvtx_marks AS
SELECT
    n.start AS start_ns, coalesce(n.text, s.value, '') AS name, pid_of(n.globalTid) AS process_id,
    tid_of(n.globalTid) AS thread_id
FROM raw.NVTX_EVENTS AS n
LEFT JOIN raw.StringIds AS s ON s.id = n.textId
WHERE n.eventType = 34;

COMMENT ON VIEW nvtx_marks IS 'One row per NVTX mark: an instant with a text.';
COMMENT ON COLUMN nvtx_marks.start_ns IS 'When it was set';
COMMENT ON COLUMN nvtx_marks.name IS 'Its text';
COMMENT ON COLUMN nvtx_marks.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN nvtx_marks.thread_id IS 'Thread that set it';
