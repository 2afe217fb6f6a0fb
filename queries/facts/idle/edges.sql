-- Before a GPU's first operation and after its last one there is no gap but the rest of the wall.
CREATE OR REPLACE TABLE internal.idle_found AS
SELECT
    gpu_id, start_ns, end_ns, NULL::BIGINT AS thread, NULL::BIGINT AS call_ns, NULL::BIGINT AS returned_ns, NULL::BOOLEAN AS is_copy, host
FROM (
    SELECT gpu_id, unnest([first_ns, end_ns]) AS start_ns, unnest([start_ns, last_ns]) AS end_ns,
        unnest([idle_host('before the first operation'), idle_host('after the last operation')]) AS host
    FROM (SELECT gpu_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM _gpu_reach GROUP BY gpu_id)
    CROSS JOIN (SELECT min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM wall)
)
WHERE end_ns > start_ns
