/*
title = "Copies use pageable memory"
family = "copy"
overlaps = true
meaning = """
The driver copies through its own staging buffer: this is slower, and the call blocks even if its name says Async."""
action = """
Allocate the host buffer once with cudaMallocHost (pin_memory=True), and copy with cudaMemcpyAsync."""
caveat = """
The copies are only a few bytes: then the wait is what costs."""
report = "host"
when = "SELECT 1 FROM host_report WHERE code = 'pageable_copy' AND wall_pct >= $shown_pct"
*/
WITH copied AS (
    SELECT * FROM _steady_copies WHERE 'pageable' IN (source_memory, target_memory)
    ORDER BY total_ns DESC, copy_kind, source_memory, target_memory, name LIMIT 1
)
SELECT
    h.recoverable_ns,
    h.wall_pct,
    (SELECT name FROM copied) AS place,
    counted_text(h.count, 'copy', 'copies') || ' ' || $per
        || CASE count_text(h.count) WHEN '1' THEN ' uses' ELSE ' use' END || ' pageable memory: the GPU is idle for '
        || time_text(h.recoverable_ns) || ' (' || share_text(h.wall_pct) || ') meanwhile' AS evidence
FROM host_report AS h
WHERE h.code = 'pageable_copy'
