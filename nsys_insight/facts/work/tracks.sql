-- The threads that GPUs waited for, laid one after the other on a concatenated timeline: one track per GPU and thread,
-- because the gaps of a GPU do not overlap. There are no tracks if the trace does not show what a CPU did.
-- has_switches: whether the thread's switches between CPUs were recorded.
CREATE OR REPLACE TABLE internal.work_tracks AS
SELECT
    gpu_id, thread, from_ns, to_ns,
    (row_number() OVER (ORDER BY gpu_id, thread) - 1) * (to_ns - from_ns + 1) - from_ns AS shift_ns,
    coalesce(
        thread IN (SELECT thread_of(tid_of(globalTid), pid_of(globalTid)) FROM unscoped.SCHED_EVENTS), false
    ) AS has_switches
FROM (SELECT DISTINCT gpu_id, thread FROM facts.idle_time WHERE host = idle_host('late') AND call_ns > start_ns)
CROSS JOIN (
    SELECT min(start_ns) AS from_ns, max(end_ns) AS to_ns
    FROM facts.idle_time
    WHERE host = idle_host('late') AND call_ns > start_ns
)
WHERE EXISTS (FROM unscoped.SCHED_EVENTS) OR EXISTS (FROM unscoped.COMPOSITE_EVENTS) OR EXISTS (FROM unscoped.OSRT_API)
