/*
code = "NSI120"
title = "The GPU waits for the host after each copy of results"
family = "host-stage"
is_host_work = true
meaning = """
In most steps data goes to the host, and the GPU is idle while the thread that launches is outside of CUDA calls. In
that time the host works on this data, or prepares what comes next."""
evidence = [
    """in {stage_steps} of {steps:step}, a copy to the host ({copy_bytes}, median) ends, and the GPU is idle until the
    next operation is launched""",
    """these gaps take {gap_ns} of a step of {step_ns} on average; for {host_ns} of it the thread is outside of CUDA
    calls; the copies right before and after them take {copy_ns}""",
    "in {back_steps} of these steps, a copy to the GPU ends the gap ({back_bytes}, median)",
]
skip_if = "The host does not compute with this data: it writes a file, or waits for input or for other processes."
effort = "function"
estimate = """
High: these gaps, with the copies before and after them where those are at least half of all copies. Low: the time in
which the thread is outside of CUDA calls, less half of the time in which the GPU is busy: it would do this work as
well."""
links = ["CUDA C++ Best Practices Guide, Data Transfer Between Host and Device"]
report = "host"
when = """
SELECT 1 FROM _idle_time WHERE host = 'late' AND end_ns - start_ns >= $min_gap_ns
HAVING 100 * sum(end_ns - start_ns) >= $min_pct * (SELECT sum(time_ns) FROM step_budget)"""

[fix]
any = """
Compute with this data on the GPU, and copy the result only; or give the data to another thread, and launch the next
step first."""
pytorch = """
Compute with this data on the GPU (torch.bincount, topk, cumsum and others instead of NumPy), and copy the result
only; otherwise copy with non_blocking=True to pinned memory, and let a thread work on it during the next
step."""
jax = """
Compute with this data in jax.numpy inside the jitted step, and copy the result only; otherwise dispatch the next step
first."""
cupy = """
Compute with this data in CuPy, which has most functions of NumPy and SciPy, and call .get() and cupy.asnumpy() for the
result only; otherwise copy to pinned memory, and let a thread work on it during the next step."""
cuda = """
Compute with this data in a kernel, or with CUB or Thrust, and copy the result only; otherwise let a thread work on it
during the next step. For messages to other processes, give MPI the addresses on the GPU."""
openacc = "Compute with this data in a parallel region, and update self only the result."
openmp = "Compute with this data in a target region, and target update from only the result."

[params]
min_pct = [10.0,
    "Share of a step in which the thread is outside of CUDA calls (10: what a cause needs to bound a step)"]
min_gap_ns = [100000, "Shortest time outside of CUDA calls that counts (a stall, as in stall-place)"]
min_bytes = [65536, "Median size of the copies from which they are data, not values (64 KiB: as in copies)"]
size_ratio = [4,
    "A copy to the GPU after the gap that is larger by this brings new data, not what was computed from the old"]
*/
WITH copies AS (
    SELECT copy_kind, start_ns, end_ns, size_bytes FROM memcpys WHERE copy_kind IN ('D2H', 'H2D')
),
late_gaps AS MATERIALIZED (
    SELECT
        start_ns, end_ns, end_ns - start_ns AS late_ns,
        least(call_ns, end_ns) - start_ns - sync_ns - copy_ns - alloc_ns - mpi_ns - api_ns AS outside_ns
    FROM _idle_time
    WHERE host = 'late' AND late_ns >= $min_gap_ns AND outside_ns >= $min_gap_ns
),
stage_gaps AS (
    SELECT
        s.step, g.late_ns, g.outside_ns, d.size_bytes, d.copy_ns + coalesce(h.copy_ns, 0) AS copy_ns,
        h.size_bytes AS back_bytes
    FROM late_gaps AS g
    JOIN (
        SELECT end_ns AS start_ns, max(size_bytes) AS size_bytes, max(end_ns - start_ns) AS copy_ns
        FROM copies WHERE copy_kind = 'D2H' GROUP BY ALL
    ) AS d USING (start_ns)
    LEFT JOIN (
        SELECT start_ns AS end_ns, max(size_bytes) AS size_bytes, max(end_ns - start_ns) AS copy_ns
        FROM copies WHERE copy_kind = 'H2D' GROUP BY ALL
    ) AS h USING (end_ns)
    ASOF JOIN _steady_windows AS s ON s.start_ns <= g.start_ns
    WHERE g.start_ns < s.end_ns AND coalesce(h.size_bytes, 0) <= $size_ratio * d.size_bytes
),
stage_totals AS (
    SELECT
        count(DISTINCT step) AS stage_steps, sum(late_ns)::DOUBLE AS gap_ns, sum(outside_ns)::DOUBLE AS host_ns,
        sum(copy_ns)::DOUBLE AS copy_ns, median(size_bytes) AS copy_bytes,
        nullif(count(DISTINCT step) FILTER (back_bytes >= $min_bytes), 0) AS back_steps,
        median(back_bytes) FILTER (back_bytes >= $min_bytes) AS back_bytes
    FROM stage_gaps
    HAVING median(size_bytes) >= $min_bytes
),
all_copies AS (
    SELECT sum(c.end_ns - c.start_ns)::DOUBLE AS all_ns
    FROM copies AS c ASOF JOIN _steady_windows AS s ON s.start_ns <= c.start_ns
    WHERE c.start_ns < s.end_ns
)
SELECT
    -- Where most copies have nothing to do with these gaps, copy-bound reports all of them: no copy is counted twice.
    2 * g.copy_ns >= a.all_ns AS has_copies,
    (g.gap_ns + if(has_copies, g.copy_ns, 0)) / t.units AS recoverable_ns,
    greatest(0, g.host_ns / t.units - 0.5 * t.busy_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    -- Where nothing goes back, the two take turns: it is the same idle time.
    CASE WHEN g.back_steps IS NULL THEN 'alternating' ELSE 'host-stage' END AS family,
    ['late-host', 'start', 'wait', 'outlier-steps', 'host-input'] || if(has_copies, ['copy'], []) AS explains,
    g.stage_steps, (SELECT count(*) FROM _steady_windows) AS steps, g.copy_bytes,
    g.gap_ns / t.units AS gap_ns, t.wall_ns AS step_ns, g.host_ns / t.units AS host_ns, g.copy_ns / t.units AS copy_ns,
    g.back_steps, g.back_bytes
FROM stage_totals AS g, all_copies AS a, _step_totals AS t
-- Where copies take most of the time, they are what to shorten.
WHERE t.has_steps AND 100 * g.host_ns >= $min_pct * t.wall_ns * t.units AND 2 * g.host_ns >= g.copy_ns
    AND g.stage_steps >= 0.5 * (SELECT count(*) FROM _steady_windows)
