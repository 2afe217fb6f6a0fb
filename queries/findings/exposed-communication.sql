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
*/
SELECT
    c.recoverable_ns,
    c.wall_pct,
    (SELECT kernel_base_name(name) FROM top_report WHERE family = 'comm' ORDER BY total_ns DESC, name LIMIT 1) AS place,
    time_text(c.time_ns) || ' (' || share_text(c.wall_pct) || ') in which the GPU only communicates'
        || coalesce((SELECT '; ' || share_text(sum(kernel_time_pct)) || ' of all kernel time is communication' FROM top_report WHERE family = 'comm'), '') AS evidence
FROM classify_report AS c
WHERE c.part = 'communication'
