/*
code = "NSI201"
title = "Blocking device-to-host copies"
family = "sync"
symptom = "wait"
meaning = """
The host blocks until the GPU has delivered the data and launches nothing meanwhile, so the GPU runs out of work."""
evidence = [
    [
        "{?sizes_differ}{reads:copy|copies} to the host {per} of {least_bytes} to {most_bytes}",
        "{reads:copy|copies} of {most_bytes} to the host {per}",
        "{reads:copy|copies} to the host {per}",
    ],
    "the CPU waits {host_wait_ns} for the data, and the GPU is idle for {idle_ns} during or right after the wait",
]
skip_if = "The GPU's next work depends on what the host does with the value."
effort = "line"
estimate = """
High: the idle time of the GPU while the host waits for the data, and until the next launch. Low: 35% of it, because
the profiler makes these calls longer."""
links = ["PyTorch documentation, Performance Tuning Guide: avoid unnecessary CPU-GPU synchronization"]
example = "sample_traces/churn.sqlite"
report = "host"
when = "SELECT 1 FROM host_report WHERE code = 'd2h_sync' AND wall_pct >= $shown_pct"

[fix.no_steps]
any = """
Keep the value on the GPU, read several values at once, or copy it to pinned memory and read it after more work is
launched."""
openacc = "Keep the data in a data region, and update self only what the host needs."
openmp = "Keep the data in a target data region, and target update from only what the host needs."

[fix.steps]
any = "Keep the value on the GPU, read it back every N steps, or copy it to pinned memory and read it one step later."
pytorch = """
Keep the value on the GPU (no .item(), .cpu(), .tolist(), print), read it every N steps, or copy it with
non_blocking=True to pinned memory and read it one step later."""
jax = """
Keep the value on the device (no float(), np.asarray(), block_until_ready() in the loop), and read it every N
steps."""
cupy = "Keep the value on the GPU (no .get(), float(), cupy.asnumpy() in the loop), and read it every N steps."
openacc = "Keep the data in a data region, and update self only every N steps."
openmp = "Keep the data in a target data region, and target update from only every N steps."
*/
WITH costliest_sync AS (
    SELECT nvtx_path, name FROM syncs_report WHERE copy_kind = 'D2H' AND (steady_count > 0 OR steady_count IS NULL)
    ORDER BY coalesce(steady_idle_ns, gpu_idle_ns) DESC, host_wait_ns DESC, nvtx_path, name LIMIT 1
),
copy_sizes AS (
    SELECT
        min(w.copy_bytes)::BIGINT AS least_bytes, max(w.copy_bytes)::BIGINT AS most_bytes,
        least_bytes < most_bytes AS sizes_differ
    FROM waits AS w
    ASOF JOIN _steady_windows AS s ON s.host_start_ns <= w.start_ns
    WHERE w.start_ns < s.host_end_ns AND w.process_id = coalesce(s.process_id, w.process_id) AND w.copy_kind = 'D2H'
)
SELECT
    h.recoverable_ns,
    0.35 * h.recoverable_ns AS saving_low_ns,
    h.wall_pct,
    (SELECT concat_ws(' in ', name, nvtx_path) FROM costliest_sync) AS place,
    CASE WHEN EXISTS (FROM steps WHERE phase = 'steady') THEN 'steps' ELSE 'no_steps' END AS cure_case,
    h.count AS reads,
    h.host_ns AS host_wait_ns,
    h.recoverable_ns AS idle_ns,
    c.*
FROM host_report AS h, copy_sizes AS c
WHERE h.code = 'd2h_sync'
