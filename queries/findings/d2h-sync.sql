/*
title = "The host waits to read data back"
family = "sync"
meaning = """
The host blocks until the GPU has delivered the data and launches nothing meanwhile, so the GPU runs out of work."""
action = """
Keep the value on the GPU (no .item(), .cpu(), print), read it back every N steps, or copy it to pinned memory and
read it later."""
caveat = """
The next step cannot begin before the host has the value."""
report = "host"
when = "SELECT 1 FROM host_report WHERE code = 'd2h_sync' AND wall_pct >= $shown_pct"
*/
WITH costliest_sync AS (
    SELECT nvtx_path, name FROM syncs_report WHERE copy_kind = 'D2H' AND (steady_count > 0 OR steady_count IS NULL)
    ORDER BY coalesce(steady_idle_ns, gpu_idle_ns) DESC, host_wait_ns DESC, nvtx_path, name LIMIT 1
),
steady_steps AS (
    FROM steps WHERE phase = 'steady'
),
copy_sizes AS (
    SELECT format_bytes(min(w.copy_bytes)::BIGINT) AS least, format_bytes(max(w.copy_bytes)::BIGINT) AS most
    FROM waits AS w
    ASOF LEFT JOIN steady_steps AS s ON s.process_id = w.process_id AND s.host_start_ns <= w.start_ns
    WHERE w.copy_kind = 'D2H' AND (w.start_ns < s.host_end_ns OR NOT EXISTS (FROM steady_steps))
)
SELECT
    h.recoverable_ns,
    h.wall_pct,
    (SELECT concat_ws(' in ', name, nvtx_path) FROM costliest_sync) AS place,
    counted_text(h.count, 'read') || ' ' || $per
        || '; the host waits ' || time_text(h.host_ns) || ', which leaves the GPU idle for '
        || time_text(h.recoverable_ns)
        || coalesce(
            (SELECT '; ' || CASE WHEN least = most THEN '' ELSE least || ' to ' END || most || ' each' FROM copy_sizes),
            ''
        ) AS evidence
FROM host_report AS h
WHERE h.code = 'd2h_sync'
