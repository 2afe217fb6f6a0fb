-- Before the first operation of a GPU and after its last one, the rest of the wall time is idle, but not a gap.
INSERT INTO facts.idle_time BY NAME
SELECT gpu_id, start_ns, end_ns, host, 0 AS sync_ns, 0 AS copy_ns, 0 AS alloc_ns, 0 AS mpi_ns, 0 AS api_ns
FROM (
    SELECT gpu_id, unnest([first_ns, end_ns]) AS start_ns, unnest([start_ns, last_ns]) AS end_ns,
        unnest([idle_host('before the first operation'), idle_host('after the last operation')]) AS host
    FROM (SELECT gpu_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM _gpu_reach GROUP BY gpu_id)
    CROSS JOIN (SELECT min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM wall)
)
WHERE end_ns > start_ns
