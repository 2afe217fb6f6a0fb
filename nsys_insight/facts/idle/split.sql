-- Idle time that ends in a wait of `internal.idle_waits` is divided: what the host did until the launch call had
-- returned, the wait of the stream, the copy.
CREATE OR REPLACE TABLE internal.idle_parts AS
SELECT
    i.*, greatest(i.start_ns, least(w.wait_ns, w.copy_ns, i.end_ns)) AS wait_from_ns,
    CASE WHEN w.copy_ns IS NOT NULL THEN greatest(i.start_ns, least(w.copy_ns, i.end_ns)) END AS copy_from_ns
FROM facts.idle_time AS i JOIN internal.idle_waits AS w USING (gpu_id, end_ns)
WHERE i.host IN (idle_host('late'), idle_host('launched before'), idle_host('launch call in progress'));
DELETE FROM facts.idle_time AS i USING internal.idle_parts AS p WHERE i.gpu_id = p.gpu_id AND i.start_ns = p.start_ns;
INSERT INTO facts.idle_time BY NAME
SELECT * EXCLUDE (wait_from_ns, copy_from_ns) REPLACE (wait_from_ns AS end_ns)
FROM internal.idle_parts WHERE wait_from_ns > start_ns
UNION ALL
SELECT * EXCLUDE (wait_from_ns, copy_from_ns) REPLACE (
    wait_from_ns AS start_ns, coalesce(copy_from_ns, end_ns) AS end_ns, idle_host('stream wait') AS host,
    0 AS sync_ns, 0 AS copy_ns, 0 AS alloc_ns, 0 AS mpi_ns, 0 AS api_ns
)
FROM internal.idle_parts WHERE coalesce(copy_from_ns, end_ns) > wait_from_ns
UNION ALL
SELECT * EXCLUDE (wait_from_ns, copy_from_ns) REPLACE (
    copy_from_ns AS start_ns, idle_host('staged copy') AS host,
    0 AS sync_ns, 0 AS copy_ns, 0 AS alloc_ns, 0 AS mpi_ns, 0 AS api_ns
)
FROM internal.idle_parts WHERE end_ns > copy_from_ns;
DROP TABLE internal.idle_waits;
DROP TABLE internal.idle_parts
