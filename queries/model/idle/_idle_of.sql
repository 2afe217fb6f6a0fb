/* parameters = ["gaps", "cut_gaps"] */
-- The causes of idle time. `gaps` are gaps of `_idle_time`, each with the window_ns that it lies in; `cut_gaps` are the
-- parts of gaps that are cut to their window. One row per GPU, window, cause and host; `gpu_idle` says what the words
-- mean. In a late gap, the time before the launch call is CPU work, minus API and MPI calls. For a cut gap, these calls
-- are looked up. DuckDB takes the gaps from a list to be few; otherwise it would expect many, and hash all calls.
WITH gap_sums AS (
    SELECT
        gpu_id, window_ns, host, is_copy,
        sum(end_ns - start_ns) AS idle_ns,
        sum(greatest(0, least(call_ns, end_ns) - start_ns)) AS before_ns,
        sum(greatest(0, least(returned_ns, end_ns) - greatest(call_ns, start_ns))) AS call_ns,
        sum(greatest(0, end_ns - greatest(call_ns, returned_ns, start_ns))) AS latency_ns,
        sum(sync_ns) AS sync_ns, sum(copy_ns) AS copy_ns, sum(alloc_ns) AS alloc_ns, sum(mpi_ns) AS mpi_ns,
        sum(api_ns) AS api_ns
    FROM (
        SELECT
            gpu_id, window_ns, host, is_copy, start_ns, end_ns, call_ns, returned_ns, sync_ns, copy_ns, alloc_ns,
            mpi_ns, api_ns
        FROM query_table(gaps)
        UNION ALL
        SELECT gpu_id, window_ns, host, is_copy, start_ns, end_ns, call_ns, returned_ns, 0, 0, 0, 0, 0
        FROM query_table(cut_gaps)
    )
    GROUP BY ALL
),
calls AS (
    SELECT
        gpu_id, window_ns,
        unnest(
            [idle_host('sync calls'), idle_host('blocking copies'), idle_host('allocation'), idle_host('MPI calls'),
                idle_host('API calls')]
        ) AS host,
        unnest([sync_ns, copy_ns, alloc_ns, mpi_ns, api_ns]) AS call_ns
    FROM gap_sums
    WHERE host = idle_host('late')
    UNION ALL
    SELECT p.gpu_id, p.window_ns, c.host, greatest(0, least(c.end_ns, p.end_ns) - greatest(c.start_ns, p.start_ns))
    FROM query_table(cut_gaps) AS p
    JOIN (FROM facts.idle_calls WHERE gap_ns IN (SELECT unnest(list(DISTINCT gap_ns)) FROM query_table(cut_gaps))) AS c
        ON c.gpu_id = p.gpu_id
        AND c.gap_ns = p.gap_ns
),
classified_times AS (
    SELECT gpu_id, window_ns, host, idle_ns
    FROM gap_sums
    WHERE host <> idle_host('late')
    UNION ALL
    SELECT gpu_id, window_ns,
        unnest(
            [
                idle_host('CPU work'),
                CASE WHEN is_copy THEN idle_host('blocking copies') ELSE idle_host('launch call') END,
                idle_host('launch latency')
            ]
        ),
        unnest([before_ns, call_ns, latency_ns])
    FROM gap_sums
    WHERE host = idle_host('late')
    UNION ALL
    SELECT gpu_id, window_ns, unnest([host, idle_host('CPU work')]), unnest([call_ns, -call_ns])
    FROM calls
    WHERE call_ns > 0
)
SELECT
    gpu_id,
    window_ns,
    CASE
        WHEN host IN (idle_host('before the first operation'), idle_host('after the last operation'))
            THEN 'start-up and end'
        WHEN host IN (idle_host('same launch call'), idle_host('launched before'), idle_host('stream wait'))
            THEN 'dependency'
        WHEN host = idle_host('sync calls') THEN 'sync'
        WHEN host IN (idle_host('blocking copies'), idle_host('staged copy')) THEN 'copy'
        WHEN host = idle_host('allocation') THEN 'allocation'
        WHEN host = idle_host('profiler') THEN 'profiler'
        WHEN host = idle_host('not in the trace') THEN 'unknown'
        ELSE 'launch'
    END AS cause,
    host,
    idle_ns
FROM (
    SELECT gpu_id::BIGINT AS gpu_id, window_ns, host, sum(idle_ns)::BIGINT AS idle_ns
    FROM classified_times
    GROUP BY ALL
    HAVING sum(idle_ns) > 0
);
