/*
code = "NSI113"
title = "The GPU and the CPU take turns"
family = "alternating"
is_host_work = true
meaning = """
In each step the host waits while the GPU works, and then does something else while the GPU is idle. With two buffers,
the GPU can work at the same time."""
evidence = [
    """of a step of {step_ns}, the GPU is busy for {busy_ns}; the host waits for it for {wait_ns}, and does
    something else for {host_ns}""",
    "{outside_ns} of the latter is outside of CUDA calls",
]
skip_if = "The next step needs the result of this one; or the host does not work but waits for something outside."
effort = "function"
estimate = """
High: the time in which the GPU is idle or only copies to the host, at most what the step takes longer than the host,
and at most the shorter one of the two times, that of the host and that of the other work of the GPU. Low: half of
it."""
links = ["CUDA C++ Best Practices Guide, Asynchronous and Overlapping Transfers with Computation"]
explains = ["late-host", "start", "wait"]
report = "steps"
when = """
SELECT 1 FROM _step_totals
WHERE has_steps AND sync_calls > 0
    AND busy_ns + host_floor_ns BETWEEN $min_sum * wall_ns AND $max_sum * wall_ns
    AND wall_ns - host_floor_ns >= $min_wait * busy_ns"""

[fix]
any = "Launch the next step before the host handles the result of this one: use two sets of buffers."
pytorch = """
Launch the next step before the host handles the result of this one: copy it with non_blocking=True to one of two
pinned buffers, and read it one step later."""
jax = "Dispatch the next step before the host reads the result of this one."
cupy = "Launch the next step before the host reads the result of this one, into one of two pinned buffers."
cuda = """
Launch the next step before the host handles the result of this one: two buffers, two streams, and an event for
each."""

[params]
min_pct = [10.0, """Share of a step that the GPU must be idle, and that the finding must save at most (10: what a cause
    needs to bound a step)"""]
min_wait = [0.7,
    "Smallest wait of the host, as a share of the time in which the GPU is busy (0.7: it does little else meanwhile)"]
min_sum = [0.85, "Smallest sum of the two, as a share of the step (0.85: little else happens)"]
max_sum = [1.5,
    "Largest sum of the two, as a share of the step (1.5: beyond, most of the shorter one overlaps already)"]
*/
WITH host_times AS (
    -- Without the waits for the GPU, and the part of it that is outside of CUDA calls.
    SELECT
        avg(host_end_ns - host_start_ns - api_ns) / any_value(m.tokens_per_step) AS outside_ns,
        -- In a step, no more than the shorter of both can overlap: a pause of the host in a few steps hides nothing.
        avg(least(host_end_ns - host_start_ns - api_sync_ns, gpu_busy_ns)) / any_value(m.tokens_per_step) AS overlap_ns
    FROM steps, step_method AS m
    WHERE phase = 'steady' AND host_end_ns < 9223372036854775807
),
copy_times AS (
    SELECT
        coalesce(sum(time_ns) FILTER (part = 'copy' AND host IS NULL), 0)::DOUBLE AS alone_ns,
        -- Copies of results overlap with the next step. Its input may be needed before it computes.
        least(alone_ns, (SELECT coalesce(sum(total_ns), 0) FROM _steady_copies WHERE copy_kind = 'D2H')) AS result_ns
    FROM step_budget
)
SELECT
    t.busy_ns - c.alone_ns / t.units AS work_ns,
    least(
        t.host_floor_ns, work_ns, t.wall_ns - t.host_floor_ns, t.idle_ns + c.result_ns / t.units, h.overlap_ns
    ) AS recoverable_ns,
    0.5 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    CASE WHEN t.host_floor_ns >= t.busy_ns THEN 'the host' ELSE 'the GPU' END AS bounded_by,
    t.wall_ns AS step_ns, t.busy_ns, t.wall_ns - t.host_floor_ns AS wait_ns, t.host_floor_ns AS host_ns, h.outside_ns
FROM host_times AS h, copy_times AS c, _step_totals AS t
WHERE 100 * least(recoverable_ns, t.idle_ns) >= $min_pct * t.wall_ns AND h.outside_ns >= 0.5 * t.host_floor_ns
