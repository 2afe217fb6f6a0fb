/*
code = "NSI112"
title = "The GPU waits for data that the host prepares"
family = "input"
explains = ["cpu-work", "stall-place", "launch-bound", "copy-bound", "outlier-steps", "d2h-sync", "pageable-copy"]
meaning = """
In each step the GPU is idle for long while no CUDA call is active, until a copy brings new data to the GPU. The host
loads or computes the next input in that time."""
evidence = [
    "in {input_steps} of {steps:step} a gap of {gap_ns} on average ends in a copy of {copy_bytes} to the GPU",
    "that is {gap_pct} of a step of {step_ns}, in which the GPU is busy for {busy_ns}",
]
caveat = """
The input comes from outside at this rate, such as from a sensor or a user."""
effort = "function"
estimate = """
High: the idle time of these gaps; all CPU work, if they are most of it. Low: half of the gaps, as another stage
may set the pace."""
links = ["PyTorch documentation, torch.utils.data", "TensorFlow and JAX documentation, input pipelines"]
report = "gaps"
when = """
SELECT 1 FROM classify_report WHERE part = 'launch' AND wall_pct >= $least_pct"""

[cure]
any = """
Prepare the next data in another thread while the GPU works on these; or make them on the GPU, or keep them there."""
pytorch = """
Load with DataLoader(num_workers=..., persistent_workers=True, pin_memory=True, prefetch_factor=...), or make the
data on the GPU (torch.rand(..., device="cuda")); copy with non_blocking=True."""
jax = """
Make the batch on the device (jax.random in the jitted step), or prepare the next one in a thread and put it there
ahead of its use (jax.device_put); read the loss back only every N steps."""
cupy = "Make the data on the GPU (cupy.random), or prepare the next batch in a thread while the GPU works."
cuda = "Prepare the next input in a second thread with a second pinned buffer, and copy it on a stream of its own."

[params.least_pct]
default = 10.0
help = "Share of a step that these gaps take (10: what a cause needs to bound a step)"

[params.least_gap_ns]
default = 100000
help = "Shortest gap that counts (a stall, as in stall-place)"
*/
WITH steady_steps AS (
    SELECT step, start_ns, end_ns FROM steps WHERE phase = 'steady'
),
input_gaps AS (
    SELECT s.step, max(g.duration_ns) AS gap_ns, arg_max(g.end_ns, g.duration_ns) AS copy_ns
    FROM (
        FROM gaps_report
        WHERE cause = 'starved' AND after_name = 'H2D copy' AND duration_ns >= $least_gap_ns
            AND (host = 'CPU work' OR host LIKE 'OS: %')
    ) AS g
    ASOF JOIN steady_steps AS s ON s.start_ns <= g.start_ns
    WHERE g.start_ns < s.end_ns
    GROUP BY s.step
),
sizes AS (
    SELECT median(m.size_bytes) AS copy_bytes FROM input_gaps AS g JOIN memcpys AS m ON m.start_ns = g.copy_ns
),
input_totals AS (
    SELECT count(*) AS input_steps, sum(gap_ns)::DOUBLE AS total_ns, avg(gap_ns) AS gap_ns FROM input_gaps
)
SELECT
    -- Where these gaps are most of the CPU work, the cure removes the rest of it, too.
    CASE WHEN i.total_ns / t.units >= 0.7 * c.cpu_ns THEN greatest(i.total_ns / t.units, c.cpu_ns)
        ELSE i.total_ns / t.units END AS recoverable_ns,
    0.5 * i.total_ns / t.units AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    i.input_steps, (SELECT count(*) FROM steady_steps) AS steps, i.gap_ns, z.copy_bytes,
    100 * i.total_ns / (t.wall_ns * t.units) AS gap_pct, t.wall_ns AS step_ns, t.busy_ns
FROM input_totals AS i, sizes AS z, _step_totals AS t,
    (SELECT coalesce(sum(recoverable_ns), 0) AS cpu_ns FROM host_report WHERE code = 'cpu_work') AS c
WHERE t.has_steps AND 100 * i.total_ns >= $least_pct * t.wall_ns * t.units
    AND i.input_steps >= 0.5 * (SELECT count(*) FROM steady_steps)
