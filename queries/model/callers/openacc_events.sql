CREATE VIEW openacc_events AS
WITH event_rows AS (
    SELECT 'launch' AS kind, *, NULL::BIGINT AS bytes, NULL::BIGINT AS varName
    FROM raw.CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH
    UNION ALL BY NAME
    SELECT 'data' AS kind, * FROM raw.CUPTI_ACTIVITY_KIND_OPENACC_DATA
    UNION ALL BY NAME
    SELECT 'other' AS kind, * FROM raw.CUPTI_ACTIVITY_KIND_OPENACC_OTHER
)
SELECT
    e.start AS start_ns, e."end" AS end_ns, duration(e.start, e."end") AS duration_ns, e.kind, n.value AS name,
    nullif(f.value, '') AS source_file, nullif(e.lineNo, 0) AS line, nullif(u.value, '') AS function_name,
    pid_of(e.globalTid) AS process_id, tid_of(e.globalTid) AS thread_id,
    k.value AS kernel, e.numGangs AS gangs, e.numWorkers AS workers, e.vectorLength AS vector_length,
    v.value AS variable, e.bytes AS size_bytes
FROM event_rows AS e
LEFT JOIN raw.StringIds AS n ON n.id = e.nameId
LEFT JOIN raw.StringIds AS f ON f.id = e.srcFile
LEFT JOIN raw.StringIds AS u ON u.id = e.funcName
LEFT JOIN raw.StringIds AS k ON k.id = e.kernelName
LEFT JOIN raw.StringIds AS v ON v.id = e.varName;

COMMENT ON VIEW openacc_events IS 'One row per event of the OpenACC runtime on the host; only with -t openacc.';
COMMENT ON COLUMN openacc_events.start_ns IS 'When it began';
COMMENT ON COLUMN openacc_events.end_ns IS 'When it ended';
COMMENT ON COLUMN openacc_events.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN openacc_events.kind IS 'launch (of a kernel), data (copies and memory), or other (constructs, waits)';
COMMENT ON COLUMN openacc_events.name IS 'The event, such as Compute construct or Enqueue Upload';
COMMENT ON COLUMN openacc_events.source_file IS 'Source file of the directive; NULL where not recorded';
COMMENT ON COLUMN openacc_events.line IS 'Its line there';
COMMENT ON COLUMN openacc_events.function_name IS 'Function that it is in';
COMMENT ON COLUMN openacc_events.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN openacc_events.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN openacc_events.kernel IS 'Kernel that a launch starts';
COMMENT ON COLUMN openacc_events.gangs IS 'Gangs of a launch: blocks of the grid';
COMMENT ON COLUMN openacc_events.workers IS 'Workers of each gang';
COMMENT ON COLUMN openacc_events.vector_length IS 'Vector lanes of each worker';
COMMENT ON COLUMN openacc_events.variable IS 'Variable that data are of';
COMMENT ON COLUMN openacc_events.size_bytes IS 'Size of the data';
