/*
title = "Communication is not overlapped with computation"
family = "communication"
meaning = """
The GPU runs nothing but communication kernels."""
action = """
Overlap it with computation on another stream (bucketed all-reduce, prefetched all-gather), or send less data."""
caveat = """
The ranks wait for a slow one, which is then the cause."""
report = "classify"
when = "SELECT 1 FROM classify_report WHERE part = 'communication' AND wall_pct >= $shown_pct"
*/
WITH kernel_totals AS (
    SELECT n.name, n.family, sum(l.total_ns) AS total_ns
    FROM launch_shapes AS l LEFT JOIN kernel_names AS n USING (name_id)
    GROUP BY ALL
)
SELECT
    c.recoverable_ns,
    c.wall_pct,
    (
        SELECT kernel_base_name(name) FROM kernel_totals WHERE family = 'comm' ORDER BY total_ns DESC, name LIMIT 1
    ) AS place,
    time_text(c.time_ns) || ' (' || share_text(c.wall_pct) || ') in which the GPU only communicates'
        || coalesce(
            '; '
            || share_text((SELECT 100.0 * sum(total_ns) FILTER (family = 'comm') / sum(total_ns) FROM kernel_totals))
            || ' of all kernel time is communication', '') AS evidence
FROM classify_report AS c
WHERE c.part = 'communication'
