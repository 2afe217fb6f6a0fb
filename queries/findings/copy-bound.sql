/*
title = "Copies to or from the GPU take time"
family = "copy"
meaning = """
Only copies to or from the GPU are running, or the GPU is idle during a blocking copy to it."""
action = """
Keep the data on the GPU; otherwise copy from pinned memory on a separate stream while kernels run."""
caveat = """
The kernels need all of the data first, and nothing else can run."""
report = "classify"
when = "SELECT 1 FROM classify_report WHERE part = 'copy' AND wall_pct >= $shown_pct"
*/
WITH longest_copies AS (
    SELECT * FROM _steady_copies WHERE copy_kind LIKE '%H%' AND copy_kind NOT LIKE 'UM %'
    ORDER BY total_ns DESC, copy_kind, source_memory, target_memory, name LIMIT 1
)
SELECT
    c.recoverable_ns,
    c.wall_pct,
    (SELECT name FROM longest_copies) AS place,
    concat_ws('; ',
        time_text(c.time_ns) || ': ' || c.evidence,
        (SELECT 'most time: ' || copy_kind || ' from ' || source_memory || ' to ' || target_memory || ' memory, '
            || format_bytes(avg_bytes::BIGINT) || ' each'
            || coalesce(' at ' || format('{:.3g} GB/s', bandwidth_bytes_per_s / 1e9), '')
        FROM longest_copies)
    ) AS evidence
FROM classify_report AS c
-- Unified memory has its own finding.
WHERE c.part = 'copy' AND NOT EXISTS (
    SELECT 1
    FROM _steady_copies
    WHERE copy_kind LIKE '%H%'
    HAVING 2 * coalesce(sum(total_ns) FILTER (copy_kind LIKE 'UM %'), 0) > sum(total_ns)
)
