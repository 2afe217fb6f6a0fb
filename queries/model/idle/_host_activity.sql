/*
description = """What threads did, as far as the trace shows, including what a scope leaves out: everything that may
    explain why a GPU was idle. Names are ids; see `api_calls` and `os_calls` for what is in scope."""
[columns]
kind = "api: a CUDA API call; mpi: an MPI call; os: an operating system call; profiler: the profiler blocked the thread"
start_ns = "When the activity began"
end_ns = "When the activity ended"
name_id = "What was called: in `_api_names` and `strings`"
correlation_id = "Joins an API call with what it caused on the GPU, together with process_id"
*/
SELECT
    'api' AS kind,
    start AS start_ns,
    "end" AS end_ns,
    nameId AS name_id,
    pid_of(globalTid) AS process_id,
    tid_of(globalTid) AS thread_id,
    correlationId AS correlation_id
FROM unscoped.CUPTI_ACTIVITY_KIND_RUNTIME
WHERE eventClass IS DISTINCT FROM 67
UNION ALL
SELECT 'mpi', start, "end", textId, pid_of(globalTid), tid_of(globalTid), NULL
FROM (
    SELECT start, "end", textId, globalTid FROM unscoped.MPI_P2P_EVENTS
    UNION ALL
    SELECT start, "end", textId, globalTid FROM unscoped.MPI_COLLECTIVES_EVENTS
    UNION ALL
    SELECT DISTINCT start, "end", textId, globalTid FROM unscoped.MPI_START_WAIT_EVENTS
    UNION ALL
    SELECT start, "end", textId, globalTid FROM unscoped.MPI_OTHER_EVENTS
    UNION ALL
    -- Older versions have MPI calls as ranges.
    SELECT start, "end", textId, globalTid
    FROM unscoped.NVTX_EVENTS
    SEMI JOIN (SELECT id AS textId FROM raw.StringIds WHERE starts_with(value, 'MPI_')) USING (textId)
    WHERE eventType = 59
)
UNION ALL
SELECT 'os', start, "end", nameId, pid_of(globalTid), tid_of(globalTid), NULL FROM unscoped.OSRT_API
UNION ALL
SELECT 'profiler', start, "end", nameId, pid_of(globalTid), tid_of(globalTid), NULL
FROM unscoped.PROFILER_OVERHEAD
WHERE NOT EXISTS (FROM raw.StringIds AS s WHERE s.id = PROFILER_OVERHEAD.nameId AND is_program_overhead(s.value));
