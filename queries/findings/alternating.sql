/*
code = "NSI113"
title = "The GPU and the CPU take turns"
family = "alternating"
overlaps = true
meaning = """
In each step the GPU works while the host waits for it, and then the host works while the GPU is idle. With two buffers
both can work at the same time."""
evidence = [
    "of a step of {step_ns}, the GPU is busy for {busy_ns}, and idle for {cpu_ns} while the host works outside of CUDA calls",
    "the host waits for the GPU for {wait_ns}",
]
caveat = """
The next step needs the result of this one before its work on the host can begin."""
effort = "function"
estimate = """
High: the shorter of the two times, which would be hidden behind the longer one. Low: half of it."""
links = ["CUDA C++ Best Practices Guide, Asynchronous and Overlapping Transfers with Computation"]
report = "classify"
when = "SELECT 1 FROM host_report WHERE code = 'cpu_work' AND wall_pct >= $least_pct"

[cure]
any = "Launch the next step before the host handles the result of this one: use two sets of buffers."
pytorch = """
Launch the next step before the host handles the result of this one: copy it with non_blocking=True to one of two pinned
buffers, and read it one step later."""
jax = "Dispatch the next step before the host reads the result of this one."
cupy = "Launch the next step before the host reads the result of this one, into one of two pinned buffers."
cuda = """
Launch the next step before the host handles the result of this one: two buffers, two streams, and an event for each."""

[params.least_pct]
default = 10.0
help = "Share of a step that each of the two must take (10: what a cause needs to bound a step)"
*/
WITH host_times AS (
    SELECT
        (SELECT sum(recoverable_ns) FROM host_report WHERE code = 'cpu_work') AS cpu_ns,
        (SELECT avg(api_sync_ns) FROM steps WHERE phase = 'steady') AS wait_ns
)
SELECT
    least(h.cpu_ns, t.busy_ns) AS recoverable_ns,
    0.5 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    t.wall_ns AS step_ns, t.busy_ns, h.cpu_ns, h.wait_ns
FROM host_times AS h, _step_totals AS t
WHERE t.has_steps AND h.wait_ns >= 0.6 * t.busy_ns
    AND 100 * h.cpu_ns >= $least_pct * t.wall_ns AND 100 * t.busy_ns >= $least_pct * t.wall_ns
