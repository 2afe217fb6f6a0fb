/*
description = "What is missing from a trace, although other events show that it happened; no rows in most traces."
stored = true
[columns]
what = "calls, kernels or copies"
calls = "Calls that prove it; NULL where the calls are missing"
*/
-- What is missing from a trace although calls prove that it happened, regardless of the scope. A call that failed
-- proves nothing.
WITH recorded_tables AS MATERIALIZED (
    SELECT
        EXISTS (FROM unscoped.CUPTI_ACTIVITY_KIND_RUNTIME) AS calls,
        EXISTS (FROM unscoped.CUPTI_ACTIVITY_KIND_KERNEL)
            OR EXISTS (FROM unscoped.CUPTI_ACTIVITY_KIND_GRAPH_TRACE) AS kernels,
        EXISTS (FROM unscoped.CUPTI_ACTIVITY_KIND_MEMCPY) AS copies
),
-- No names if nothing is missing. Then no calls are read.
names AS (
    SELECT n.name_id, CASE n.call_group WHEN 'copy' THEN 'copies' ELSE 'kernels' END AS what
    FROM _api_names AS n, recorded_tables AS t
    WHERE n.call_group IN ('launch', 'graph launch') AND NOT t.kernels
        -- Copies in graphs that were traced without their nodes are not in a trace, nor are prefetches of what is
        -- already there.
        OR n.call_group = 'copy' AND n.name NOT LIKE '%Prefetch%' AND NOT t.copies AND t.kernels
            AND NOT EXISTS (FROM unscoped.CUPTI_ACTIVITY_KIND_GRAPH_TRACE)
),
successful_calls AS (
    SELECT n.what, count(*) AS calls
    FROM unscoped.CUPTI_ACTIVITY_KIND_RUNTIME AS c
    JOIN names AS n ON n.name_id = c.nameId
    WHERE c.eventClass IS DISTINCT FROM 67 AND c.returnValue = 0
    GROUP BY ALL
)
SELECT 'calls' AS what, NULL::BIGINT AS calls
FROM recorded_tables WHERE NOT calls AND (kernels OR copies)
UNION ALL
SELECT what, calls
FROM successful_calls;
