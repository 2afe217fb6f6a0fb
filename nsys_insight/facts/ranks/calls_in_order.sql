-- The calls of the threads of a process that launch work, each with what it starts on the GPU, if anything.
SELECT a.start_ns, a.end_ns, w.what
FROM (
    SELECT start_ns, end_ns, correlation_id, thread_id FROM outer_api_calls WHERE process_id = $process
) AS a
LEFT JOIN (
    SELECT correlation_id, any_value(what ORDER BY start_ns) AS what
    FROM (
        SELECT correlation_id, start_ns, copy_kind || ' copy' AS what FROM memcpys WHERE process_id = $process
        UNION ALL
        SELECT correlation_id, start_ns, short_name FROM kernels WHERE process_id = $process
    )
    GROUP BY correlation_id
) AS w USING (correlation_id)
WHERE a.thread_id IN (
    SELECT DISTINCT thread_id FROM api_calls
    WHERE process_id = $process AND call_group IN ('launch', 'graph launch')
)
ORDER BY a.start_ns
