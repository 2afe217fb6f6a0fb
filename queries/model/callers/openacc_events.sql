/*
description = "One row per event of the OpenACC runtime on the host; only with -t openacc."
[columns]
start_ns = "When the event began"
end_ns = "When the event ended"
kind = "launch (of a kernel), data (copies and memory), or other (constructs, waits)"
name = "The event, such as Compute construct or Enqueue Upload"
source_file = "Source file of the directive; NULL where not recorded"
line = "Line of the directive in the source file"
function_name = "Function that it is in"
kernel = "Kernel that a launch starts"
gangs = "Gangs of a launch: blocks of the grid"
workers = "Workers of each gang"
vector_length = "Vector lanes of each worker"
variable = "Variable that data are of"
size_bytes = "Size of the data"
*/
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
