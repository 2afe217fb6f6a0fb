-- The threads that GPUs waited for, laid one after the other on a single line of time: of each GPU, for its gaps do not
-- overlap. No track where nothing was recorded of what a CPU did. has_switches: whether the thread's switches from CPU
-- to CPU were.
CREATE OR REPLACE TABLE internal.work_tracks AS
SELECT
    gpu_id, thread, from_ns, to_ns,
    (row_number() OVER (ORDER BY gpu_id, thread) - 1) * (to_ns - from_ns + 1) - from_ns AS shift_ns,
    coalesce(
        thread IN (SELECT thread_of(tid_of(globalTid), pid_of(globalTid)) FROM whole.SCHED_EVENTS), false
    ) AS has_switches
FROM (SELECT DISTINCT gpu_id, thread FROM facts.idle_time WHERE host = idle_host('late') AND call_ns > start_ns)
CROSS JOIN (
    SELECT min(start_ns) AS from_ns, max(end_ns) AS to_ns
    FROM facts.idle_time
    WHERE host = idle_host('late') AND call_ns > start_ns
)
WHERE EXISTS (FROM whole.SCHED_EVENTS) OR EXISTS (FROM whole.COMPOSITE_EVENTS) OR EXISTS (FROM whole.OSRT_API)
