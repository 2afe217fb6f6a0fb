/*
title = "Memory is allocated inside the loop"
family = "allocation"
meaning = """
The GPU is idle while the host allocates or frees memory; cudaFree also waits for the GPU."""
action = """
Allocate once before the loop and reuse the memory, or use a pool: cudaMallocAsync, the framework's allocator without
empty_cache."""
caveat = """
It is warm-up that the steady state does not repeat."""
report = "host"
when = "SELECT 1 FROM host_report WHERE code = 'allocation'"
*/
SELECT
    h.recoverable_ns,
    h.wall_pct,
    CASE
        WHEN NOT EXISTS (FROM steps WHERE phase = 'steady') THEN 'The GPU waits while memory is allocated'
    END AS title,
    -- Without steps, it is unknown whether there is a loop.
    CASE
        WHEN NOT EXISTS (FROM steps WHERE phase = 'steady') THEN
        'Allocate ahead of the work that needs it, in few calls, and reuse what there is; host memory takes long to '
        'pin.'
        -- By default, a pool gives its memory back each time that the host waits.
        WHEN EXISTS (
            FROM (FROM mallocs_report WHERE steady_count > 0 ORDER BY total_ns DESC, name LIMIT 1)
            WHERE name LIKE '%Async'
        )
            THEN
        'Let the pool keep its memory (cudaMemPoolAttrReleaseThreshold; by default it is given back at each wait), '
        'or allocate before the loop and reuse.'
    END AS action,
    (SELECT string_agg(name, ', ' ORDER BY total_ns DESC, name) FROM (
        FROM mallocs_report
        WHERE steady_count > 0 OR steady_count IS NULL
        ORDER BY total_ns DESC, name
        LIMIT 2)) AS place,
    counted_text(h.count, 'call') || ' ' || $per
        || CASE count_text(h.count) WHEN '1' THEN ' takes' ELSE ' take' END || ' the host ' || time_text(h.host_ns)
        || ', and the GPU is idle for ' || time_text(h.recoverable_ns)
        || CASE count_text(h.count) WHEN '1' THEN ' because of it' ELSE ' because of them' END AS evidence
FROM host_report AS h
WHERE h.code = 'allocation'
