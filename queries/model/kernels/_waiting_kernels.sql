/*
description = """The kernels that began before the one before them on their stream had ended, as programmatic dependent
    launch lets them: their durations contain the wait for it. One row; no row where they share little time."""
[columns]
kernels = "Kernels that began before the one before them had ended"
overlap_ns = "Time that they share with kernels before them on their stream"
overlap_pct = "Time shared with kernels before them, as a share of all kernel time: 1 at least"
*/
-- Kernels of one stream run one after another otherwise; in graphs, those of parallel branches have streams of their
-- own. Sorting millions of kernels takes as long as the reports that read this, so only streams are sorted whose
-- kernels overlap in a part of the trace.
WITH stream_kernels AS (
    SELECT
        globalPid AS process, deviceId AS device_id, contextId AS context_id, streamId AS stream_id, start AS start_ns,
        "end" AS end_ns
    FROM raw.CUPTI_ACTIVITY_KIND_KERNEL
    WHERE streamId IS NOT NULL
),
overlapping_streams AS MATERIALIZED (
    SELECT DISTINCT process, device_id, context_id, stream_id
    FROM (FROM stream_kernels LIMIT 100000)
    QUALIFY start_ns < lag(end_ns) OVER (PARTITION BY process, device_id, context_id, stream_id ORDER BY start_ns)
)
SELECT
    count(*) FILTER (shared_ns > 0) AS kernels, sum(shared_ns)::BIGINT AS overlap_ns,
    100.0 * sum(shared_ns) / (
        SELECT nullif(sum(duration(start, "end")), 0) FROM raw.CUPTI_ACTIVITY_KIND_KERNEL
    ) AS overlap_pct
FROM (
    SELECT
        greatest(0, least(end_ns, coalesce(max(end_ns) OVER (
            PARTITION BY process, device_id, context_id, stream_id ORDER BY start_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), start_ns)) - start_ns) AS shared_ns
    FROM stream_kernels SEMI JOIN overlapping_streams USING (process, device_id, context_id, stream_id)
)
HAVING 100 * sum(shared_ns) >= (SELECT sum(duration(start, "end")) FROM raw.CUPTI_ACTIVITY_KIND_KERNEL);
