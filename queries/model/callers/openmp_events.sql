/*
description = "One row per event with a duration of the OpenMP runtime on the host; only with -t openmp."
[columns]
start_ns = "When the event began"
end_ns = "When the event ended"
kind = "thread, parallel, synchronization, wait, task, master, reduction, wait for a lock, lock held or worksharing"
name = "The event, in the words of nsys"
*/
WITH event_rows AS (
    SELECT 'thread' AS kind, * FROM raw.OPENMP_EVENT_KIND_THREAD
    UNION ALL
    SELECT 'parallel' AS kind, * FROM raw.OPENMP_EVENT_KIND_PARALLEL
    UNION ALL
    SELECT 'synchronization' AS kind, * FROM raw.OPENMP_EVENT_KIND_SYNC_REGION
    UNION ALL
    SELECT 'wait' AS kind, * FROM raw.OPENMP_EVENT_KIND_SYNC_REGION_WAIT
    UNION ALL
    SELECT 'task' AS kind, * FROM raw.OPENMP_EVENT_KIND_TASK
    UNION ALL
    SELECT 'master' AS kind, * FROM raw.OPENMP_EVENT_KIND_MASTER
    UNION ALL
    SELECT 'reduction' AS kind, * FROM raw.OPENMP_EVENT_KIND_REDUCTION
    UNION ALL
    SELECT 'wait for a lock' AS kind, * FROM raw.OPENMP_EVENT_KIND_MUTEX_WAIT
    UNION ALL
    SELECT 'lock held' AS kind, * FROM raw.OPENMP_EVENT_KIND_CRITICAL_SECTION
    UNION ALL
    SELECT 'worksharing' AS kind, * FROM raw.OPENMP_EVENT_KIND_WORKSHARE
)
SELECT
    e.start AS start_ns, e."end" AS end_ns, duration(e.start, e."end") AS duration_ns, e.kind, n.value AS name,
    pid_of(e.globalTid) AS process_id, tid_of(e.globalTid) AS thread_id
FROM event_rows AS e
LEFT JOIN raw.StringIds AS n ON n.id = e.nameId;
