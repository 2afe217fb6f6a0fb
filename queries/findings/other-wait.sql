/*
title = "The host waits for the GPU"
family = "sync"
meaning = """
A synchronizing call blocks the host where it reads nothing back, and the GPU runs out of work."""
action = """
Remove the call (cudaDeviceSynchronize, torch.cuda.synchronize) or wait for one event: the operations of a stream run in
order without it."""
caveat = """
It is there for a measurement, or something else needs the complete result."""
report = "host"
when = "SELECT 1 FROM host_report WHERE code = 'other_wait' AND wall_pct >= $shown_pct"
*/
WITH costliest_sync AS (
    SELECT nvtx_path, name FROM syncs_report
    WHERE copy_kind IS DISTINCT FROM 'D2H' AND NOT is_copy AND (steady_count > 0 OR steady_count IS NULL)
    ORDER BY coalesce(steady_idle_ns, gpu_idle_ns) DESC, host_wait_ns DESC, nvtx_path, name LIMIT 1
)
SELECT
    h.recoverable_ns,
    h.wall_pct,
    (SELECT concat_ws(' in ', name, nvtx_path) FROM costliest_sync) AS place,
    counted_text(h.count, 'wait') || ' ' || $per
        || '; the host waits ' || time_text(h.host_ns) || ', which leaves the GPU idle for '
        || time_text(h.recoverable_ns) AS evidence
FROM host_report AS h
WHERE h.code = 'other_wait'
