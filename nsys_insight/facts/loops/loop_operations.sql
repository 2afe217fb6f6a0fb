-- The rows of `facts.loop_operations`: what the operations of typical iterations are. Of waits that begin and end at
-- the same instant, one counts.
INSERT INTO facts.loop_operations BY NAME
WITH rows_with_null AS (
    SELECT * REPLACE (
        nullif(inner_loop::VARCHAR, '') AS inner_loop, nullif(name_id, -1) AS name_id, kind::VARCHAR AS kind
    )
    FROM rows_to_insert
),
waits AS (
    SELECT start_ns, end_ns, min(kind) AS name FROM internal.loop_others WHERE token = hash('wait') GROUP BY ALL
)
SELECT
    r.loop, r.position, r.inner_loop, r.repeats,
    CASE
        WHEN r.inner_loop IS NOT NULL THEN 'loop'
        WHEN r.kind IN ('H2D', 'D2H', 'copy') THEN 'copy'
        ELSE r.kind
    END AS kind,
    CASE WHEN r.inner_loop IS NULL THEN r.name_id END AS name_id,
    CASE
        WHEN r.inner_loop IS NOT NULL OR r.kind = 'kernel' THEN NULL
        WHEN r.kind IN ('H2D', 'D2H') THEN r.kind || ' copy'
        WHEN r.kind = 'wait' THEN w.name
        ELSE r.kind
    END AS label,
    r.gap_ns, r.duration_ns, r.host_ns AS host_start_ns, r.start_ns
FROM rows_with_null AS r
LEFT JOIN waits AS w ON r.kind = 'wait' AND w.start_ns = r.start_ns AND w.end_ns = r.end_ns
ORDER BY r.loop, r.position
