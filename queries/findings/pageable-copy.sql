/*
title = "Copies use pageable memory"
family = "copy"
overlaps = true
meaning = """
The driver copies through a buffer of its own: slower, and the call blocks whatever its name says."""
action = """
Allocate the host's side with cudaMallocHost (pin_memory=True), once, and copy with cudaMemcpyAsync."""
wrong_when = """
The copies are few bytes: then not the memory but the wait is what costs."""
command = "nsys-insight copies TRACE"
*/
WITH copied AS (
    SELECT * FROM copies_report WHERE 'pageable' IN (source_memory, target_memory)
    ORDER BY total_ns DESC, kind, source_memory, target_memory, name LIMIT 1
)
SELECT
    h.recoverable_ns,
    h.wall_pct,
    (SELECT kind || ' ' || name FROM copied) AS place,
    concat_ws('; ',
        count_text(h.count) || CASE WHEN EXISTS (FROM steps WHERE phase = 'steady') THEN ' copies a step' ELSE ' copies in all' END
            || ' of pageable memory hold the host up ' || time_text(h.host_ns) || ', in which the GPU is idle ' || time_text(h.recoverable_ns)
            || ' (' || share_text(h.wall_pct) || ')',
        (SELECT 'most time: ' || kind || ', ' || format_bytes(avg_bytes::BIGINT) || ' each'
            || coalesce(' at ' || format('{:.3g} GB/s', bandwidth_bytes_per_s / 1e9), '') FROM copied)
    ) AS evidence
FROM host_report AS h
WHERE h.bottleneck = 'pageable copies'
