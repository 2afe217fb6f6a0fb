/*
title = "The host waits for the GPU"
family = "sync"
meaning = """
A synchronising call stops the host where it reads nothing back, and the GPU runs dry."""
action = """
Remove the call (cudaDeviceSynchronize, torch.cuda.synchronize) or wait for one event: a stream runs in order without it."""
caveat = """
It is there for measuring, or somebody else needs the result complete."""
report = "host"
*/
WITH places AS (
    SELECT nvtx_path, name FROM syncs_report WHERE copy_kind IS DISTINCT FROM 'D2H' AND NOT is_copy AND (steady_count > 0 OR steady_count IS NULL)
    ORDER BY coalesce(steady_idle_ns, gpu_idle_ns) DESC, host_wait_ns DESC, nvtx_path, name LIMIT 1
)
SELECT
    h.recoverable_ns,
    h.wall_pct,
    (SELECT concat_ws(' in ', name, nvtx_path) FROM places) AS place,
    counted_text(h.count, 'wait') || ' ' || $per
        || '; the host waits ' || time_text(h.host_ns) || ', the GPU is idle ' || time_text(h.recoverable_ns) || ' for it' AS evidence
FROM host_report AS h
WHERE h.code = 'other_wait'
