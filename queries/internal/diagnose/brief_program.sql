-- Who uses the GPUs: processes, the threads that launch, and the capture. One row.
SELECT
    (SELECT count(*) FROM _cuda_processes) AS processes,
    count(DISTINCT (process_id, thread_id)) FILTER (call_group IN ('launch', 'graph launch')) AS launch_threads,
    coalesce(sum(calls) FILTER (call_group IN ('launch', 'graph launch')), 0)::BIGINT AS launch_calls
FROM _call_counts
