/*
code = "NSI112"
title = "The GPU waits until the host copies new data to it"
family = "input"
is_host_work = true
explains = ["late-host", "start", "wait", "copy", "outlier-steps"]
meaning = """
In most steps the GPU is idle while the thread that launches is outside of CUDA calls, until a copy brings new data
to the GPU. In that time the host prepares this data, or handles the data before."""
evidence = [
    """in {input_steps} of {steps:step}, the GPU is idle until a copy to it begins ({copy_bytes}, median), and the
    thread that copies is outside of CUDA calls for most of that time""",
    "these gaps take {gap_ns} of a step of {step_ns} on average; the GPU is busy for {busy_ns} of the step",
]
skip_if = "The input comes from outside at this rate, such as from a sensor or a user."
effort = "function"
estimate = """
High: the idle time of these gaps; all CPU work or idle time, if they are 70% of it. Low: half of the gaps, because
the copy remains, and the preparation may take longer than the work of the GPU."""
links = ["PyTorch documentation, torch.utils.data", "TensorFlow and JAX documentation, input pipelines"]
report = "host"
when = """
SELECT 1 FROM _idle_time WHERE host = 'late' AND end_ns - start_ns >= $min_gap_ns
HAVING 100 * sum(end_ns - start_ns) >= $min_pct * (SELECT sum(time_ns) FROM step_budget)"""

[fix]
any = """
Prepare the next data in another thread while the GPU works on these; or make them on the GPU, or keep them there."""
pytorch = """
Load with DataLoader(num_workers=..., persistent_workers=True, pin_memory=True, prefetch_factor=...). Let the GPU
convert and normalize: copy the data as it is stored (images as uint8) with non_blocking=True. Or make the data there
(torch.rand(..., device="cuda"))."""
jax = """
If the array stays the same (a NumPy argument of a jitted function is copied in each call), put it on the GPU once,
before the loop (jax.device_put). Else make it there (jax.random in the jitted step), or prepare the next one in a
thread and put it there ahead of its use; read the loss back only every N steps."""
cupy = """
If the array stays the same, copy it once, before the loop (cupy.asarray). Else make it on the GPU (cupy.random), or
prepare the next one in a thread while the GPU works."""
openacc = "Compute the data in a parallel region, and keep it in a data region instead of updating it in each step."
openmp = "Compute the data in a target region, and keep it in a target data region instead of updating it in each step."
cuda = "Prepare the next input in a second thread with a second pinned buffer, and copy it on a stream of its own."

[params]
min_pct = [10.0, "Share of a step that these gaps take (10: what a cause needs to bound a step)"]
min_gap_ns = [100000, "Shortest gap that counts (a stall, as in stall-place)"]
value_bytes = [256, "Median size of the copies up to which they are single values, not data (256: as in small-copies)"]
size_ratio = [4, "How much larger they are than a copy to the host right before the gap (as in host-stage)"]
*/
-- For most of a gap, the thread whose copy ends it is in no CUDA call. A gap after a copy to the host of about this
-- size belongs to host-stage: the data is not new.
WITH late_gaps AS MATERIALIZED (
    SELECT gpu_id, start_ns, end_ns, end_ns - start_ns AS late_ns
    FROM _idle_time
    WHERE host = 'late' AND late_ns >= $min_gap_ns
        AND 2 * (least(call_ns, end_ns) - start_ns - sync_ns - copy_ns - alloc_ns - mpi_ns - api_ns) >= late_ns
),
input_gaps AS (
    SELECT s.step, g.late_ns, m.size_bytes
    FROM late_gaps AS g
    JOIN (SELECT start_ns, max(size_bytes) AS size_bytes FROM memcpys WHERE copy_kind = 'H2D' GROUP BY start_ns) AS m
        ON m.start_ns = g.end_ns
    LEFT JOIN (
        SELECT end_ns, max(size_bytes) AS size_bytes FROM memcpys WHERE copy_kind = 'D2H' GROUP BY end_ns
    ) AS d ON d.end_ns = g.start_ns
    ASOF JOIN _steady_windows AS s ON s.start_ns <= g.start_ns
    WHERE g.start_ns < s.end_ns AND m.size_bytes > $size_ratio * coalesce(d.size_bytes, 0)
),
input_totals AS (
    SELECT
        count(DISTINCT step) AS input_steps, sum(late_ns)::DOUBLE AS total_ns, median(size_bytes) AS copy_bytes
    FROM input_gaps
    HAVING median(size_bytes) > $value_bytes
)
SELECT
    -- Where these gaps are most of the CPU work, the cure removes the rest of it, too.
    CASE
        WHEN i.total_ns / t.units >= 0.7 * t.idle_ns THEN t.idle_ns
        WHEN i.total_ns / t.units >= 0.7 * c.cpu_ns THEN greatest(i.total_ns / t.units, c.cpu_ns)
        ELSE i.total_ns / t.units
    END AS recoverable_ns,
    0.5 * i.total_ns / t.units AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    i.input_steps, (SELECT count(*) FROM _steady_windows) AS steps, i.total_ns / t.units AS gap_ns, i.copy_bytes,
    t.wall_ns AS step_ns, t.busy_ns
FROM input_totals AS i, _step_totals AS t,
    (SELECT coalesce(sum(recoverable_ns), 0) AS cpu_ns FROM host_report WHERE code = 'cpu_work') AS c
WHERE t.has_steps AND 100 * i.total_ns >= $min_pct * t.wall_ns * t.units
    AND i.input_steps >= 0.5 * (SELECT count(*) FROM _steady_windows)
