-- Who uses the GPUs: processes, their threads that call CUDA, and those that launch. One row.
SELECT
    (SELECT count(*) FROM _cuda_processes) AS processes,
    count(DISTINCT (process_id, thread_id)) AS threads,
    count(DISTINCT (process_id, thread_id)) FILTER (call_group IN ('launch', 'graph launch')) AS launch_threads
FROM _call_counts
