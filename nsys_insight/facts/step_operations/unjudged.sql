-- The operations of a step with all constructs, and what a construct takes in all its shapes.
CREATE OR REPLACE TABLE internal.unjudged_operations AS
WITH totals AS (
    SELECT
        process_id, device_id, construct, coalesce(construct, name) AS label, count(*) AS shapes, sum(calls) AS calls,
        sum(total_ns) AS total_ns, sum(step_pct) AS step_pct
    FROM internal.unnamed_operations
    GROUP BY ALL
),
contents AS (
    SELECT
        process_id, device_id, list(construct ORDER BY construct) AS constructs,
        map(constructs, list(calls ORDER BY construct)) AS counts,
        map(constructs, list(total_ns ORDER BY construct)) AS times
    FROM totals
    WHERE construct IS NOT NULL
    GROUP BY process_id, device_id
)
SELECT
    o.* EXCLUDE (constructs),
    coalesce(t.constructs, []) AS constructs, t.counts, t.times, c.domain, c.library,
    s.shapes, s.calls AS construct_calls, s.total_ns AS construct_ns, s.step_pct AS construct_pct
FROM internal.unnamed_operations AS o
JOIN totals AS s
    ON s.process_id = o.process_id AND s.device_id IS NOT DISTINCT FROM o.device_id
        AND s.construct IS NOT DISTINCT FROM o.construct AND s.label IS NOT DISTINCT FROM coalesce(o.construct, o.name)
LEFT JOIN contents AS t ON t.process_id = o.process_id AND t.device_id IS NOT DISTINCT FROM o.device_id
LEFT JOIN constructs() AS c ON c.construct = o.construct
