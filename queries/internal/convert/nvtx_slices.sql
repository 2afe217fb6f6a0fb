-- The columns of gpu_slices, for NVTX ranges.
SELECT process_id AS process, thread_id, 0 AS track_number, 'nvtx' AS category, name,
    nullif(domain, '') AS detail, start_ns,
    coalesce(end_ns, (SELECT max(end_ns) FROM wall), start_ns) AS end_ns, NULL AS flow
FROM nvtx_ranges ORDER BY process_id, thread_id, start_ns, end_ns DESC, name
