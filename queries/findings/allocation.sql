/*
title = "Memory is allocated in the loop"
family = "allocation"
meaning = """
The GPU is idle while the host allocates or frees; cudaFree waits for the GPU besides."""
action = """
Allocate before the loop and reuse, or use a pool: cudaMallocAsync, the framework's allocator without empty_cache."""
caveat = """
It is warm-up that the steady state no longer has."""
report = "host"
*/
SELECT
    h.recoverable_ns,
    h.wall_pct,
    (SELECT string_agg(name, ', ' ORDER BY total_ns DESC, name) FROM (
        FROM mallocs_report WHERE steady_count > 0 OR steady_count IS NULL ORDER BY total_ns DESC, name LIMIT 2)) AS place,
    counted_text(h.count, 'call') || ' ' || $per
        || CASE count_text(h.count) WHEN '1' THEN ' takes' ELSE ' take' END || ' the host ' || time_text(h.host_ns) || ', the GPU is idle ' || time_text(h.recoverable_ns) || ' for them' AS evidence
FROM host_report AS h
WHERE h.code = 'allocation'
