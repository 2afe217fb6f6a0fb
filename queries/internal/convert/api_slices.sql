-- The columns of gpu_slices, for CUDA API calls.
SELECT process_id AS process, thread_id, 0 AS track_number, 'api' AS category, name, NULL AS detail,
    start_ns, end_ns,
    CASE WHEN call_group IN ('launch', 'graph launch', 'copy', 'memset') THEN correlation_id END AS flow
FROM api_calls ORDER BY process_id, thread_id, start_ns, end_ns DESC, name
