/*
description = "What is missing from a trace, although other events show that it happened; no rows in most traces."
stored = true
[columns]
what = "calls, kernels or copies"
calls = "Calls that prove it; of kernels the launch calls; NULL where there are none, or the calls are missing"
transfers = "Copy and memset calls, if nothing at all that ran on a GPU was recorded; else NULL"
*/
-- What is missing from a trace although calls prove that it happened, regardless of the scope. A call that failed
-- proves nothing.
WITH recorded_tables AS MATERIALIZED (
    SELECT
        EXISTS (FROM unscoped.CUPTI_ACTIVITY_KIND_RUNTIME) AS calls,
        EXISTS (FROM unscoped.CUPTI_ACTIVITY_KIND_KERNEL)
            OR EXISTS (FROM unscoped.CUPTI_ACTIVITY_KIND_GRAPH_TRACE) AS kernels,
        EXISTS (FROM unscoped.CUPTI_ACTIVITY_KIND_MEMCPY) AS copies,
        EXISTS (FROM unscoped.CUPTI_ACTIVITY_KIND_MEMSET) AS memsets
),
-- No names if nothing is missing. Then no calls are read.
names AS (
    SELECT
        n.name_id, n.call_group IN ('launch', 'graph launch') AS is_launch,
        CASE WHEN t.kernels THEN 'copies' ELSE 'kernels' END AS what
    FROM _api_names AS n, recorded_tables AS t, scope AS s
    -- What ran on the other GPUs is left out of the scope of one.
    WHERE s.device_id IS NULL AND (n.call_group IN ('launch', 'graph launch') AND NOT t.kernels
        -- Copies in graphs that were traced without their nodes are not in a trace, nor are prefetches of what is
        -- already there.
        OR n.call_group = 'copy' AND n.name NOT LIKE '%Prefetch%' AND NOT t.copies AND t.kernels
            AND NOT EXISTS (FROM unscoped.CUPTI_ACTIVITY_KIND_GRAPH_TRACE)
        -- If nothing that ran on a GPU was recorded, a copy proves that too.
        OR n.call_group IN ('copy', 'memset') AND n.name NOT LIKE '%Prefetch%'
            AND NOT (t.kernels OR t.copies OR t.memsets))
),
successful_calls AS (
    SELECT
        n.what,
        nullif(count(*) FILTER (n.is_launch OR n.what = 'copies'), 0) AS calls,
        nullif(count(*) FILTER (NOT n.is_launch AND n.what = 'kernels'), 0) AS transfers
    FROM unscoped.CUPTI_ACTIVITY_KIND_RUNTIME AS c
    JOIN names AS n ON n.name_id = c.nameId
    WHERE c.eventClass IS DISTINCT FROM 67 AND c.returnValue = 0
    GROUP BY ALL
)
SELECT 'calls' AS what, NULL::BIGINT AS calls, NULL::BIGINT AS transfers
FROM recorded_tables WHERE NOT calls AND (kernels OR copies)
UNION ALL
SELECT what, calls, transfers
FROM successful_calls;
