-- The operations of a step with all constructs, and what a construct takes in all its shapes.
CREATE OR REPLACE TABLE internal.unjudged_operations AS
WITH construct_totals AS (
    SELECT process_id, device_id, construct, sum(calls) AS calls, sum(total_ns) AS total_ns
    FROM internal.unnamed_operations
    WHERE construct IS NOT NULL
    GROUP BY process_id, device_id, construct
),
contents AS (
    SELECT
        process_id, device_id, list(construct ORDER BY construct) AS constructs,
        map(constructs, list(calls ORDER BY construct)) AS counts,
        map(constructs, list(total_ns ORDER BY construct)) AS times
    FROM construct_totals
    GROUP BY process_id, device_id
)
SELECT
    o.* EXCLUDE (constructs),
    coalesce(t.constructs, []) AS constructs, t.counts, t.times, c.domain, c.library,
    count(*) OVER of_construct AS shapes, sum(o.calls) OVER of_construct AS construct_calls,
    sum(o.total_ns) OVER of_construct AS construct_ns, sum(o.step_pct) OVER of_construct AS construct_pct
FROM internal.unnamed_operations AS o
LEFT JOIN contents AS t ON t.process_id = o.process_id AND t.device_id IS NOT DISTINCT FROM o.device_id
LEFT JOIN (SELECT construct, domain, library FROM constructs()) AS c ON c.construct = o.construct
WINDOW of_construct AS (PARTITION BY o.process_id, o.device_id, coalesce(o.construct, o.name))
