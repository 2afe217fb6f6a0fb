-- The rows of `facts.loop_operations`: what stands at some positions of the sequence.
INSERT INTO facts.loop_operations BY NAME
WITH rows_with_null AS (
    SELECT * REPLACE (nullif(inner_loop::VARCHAR, '') AS inner_loop) FROM rows_to_insert
)
SELECT
    r.loop, r.position, r.inner_loop, r.repeats,
    CASE
        WHEN r.inner_loop IS NOT NULL THEN 'loop'
        WHEN s.kind IN ('kernel', 'memset', 'graph') THEN s.kind
        WHEN s.kind IN ('H2D', 'D2H', 'copy') THEN 'copy'
        ELSE 'wait'
    END AS kind,
    CASE WHEN r.inner_loop IS NULL THEN s.name_id END AS name_id,
    CASE
        WHEN r.inner_loop IS NOT NULL OR s.kind = 'kernel' THEN NULL
        WHEN s.kind IN ('H2D', 'D2H') THEN s.kind || ' copy'
        ELSE s.kind
    END AS label,
    r.gap_ns, r.duration_ns, s.host_ns AS host_start_ns, s.start_ns
FROM rows_with_null AS r
JOIN internal.loop_sequence AS s ON s.position = r.first
ORDER BY r.loop, r.position
