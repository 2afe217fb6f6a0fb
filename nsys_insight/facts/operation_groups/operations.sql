-- The operations of the first steady steps. An operation belongs to the step in which its launch call begins. If the
-- trace lacks the call, it belongs to the step in whose step time it starts.
CREATE OR REPLACE TABLE internal.grouped_operations AS
WITH limits AS (
    SELECT
        min(host_start_ns) AS host_start_ns, max(host_end_ns) AS host_end_ns, min(start_ns) AS start_ns,
        max(end_ns) AS end_ns, count(*) AS steps, any_value(units) AS units
    FROM internal.first_steps
),
owned AS (
    SELECT o.*, f.step
    FROM (
        SELECT s.* FROM internal.step_launched AS s, limits AS l
        WHERE s.call_ns >= l.host_start_ns AND s.call_ns < l.host_end_ns
    ) AS o
    ASOF JOIN internal.first_steps AS f ON f.host_start_ns <= o.call_ns
    WHERE o.call_ns < f.host_end_ns
    UNION ALL BY NAME
    SELECT o.*, f.step
    FROM (
        SELECT s.* FROM internal.step_launched AS s, limits AS l
        WHERE s.call_ns IS NULL AND s.start_ns >= l.start_ns AND s.start_ns < l.end_ns
    ) AS o
    ASOF JOIN internal.first_steps AS f ON f.start_ns <= o.start_ns
    WHERE o.start_ns < f.end_ns
)
SELECT
    ($process)::BIGINT AS process_id, o.device_id, o.stream_id,
    CASE WHEN o.kind IN ('H2D', 'D2H') THEN 'copy' ELSE o.kind::VARCHAR END AS kind,
    CASE
        WHEN o.kind = 'kernel' THEN NULL
        WHEN o.is_migration THEN 'migration'
        WHEN o.kind = 'H2D' THEN 'H2D copy'
        WHEN o.kind = 'D2H' THEN 'D2H copy'
        WHEN o.kind = 'copy' THEN 'other copy'
        ELSE o.kind::VARCHAR
    END AS label,
    o.name_id, o.grid, o.block, o.start_ns, o.end_ns, o.size_bytes,
    CASE WHEN o.call_group IS DISTINCT FROM 'graph launch' THEN o.returned_ns - o.call_ns END AS host_ns,
    o.call_group IS NOT DISTINCT FROM 'graph launch' AS is_in_graph, l.units, o.step, l.steps
FROM owned AS o, limits AS l
