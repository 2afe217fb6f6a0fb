/*
code = "NSI212"
title = "The host waits after most launches"
family = "sync-each-launch"
blocks = ["late-host"]
meaning = """
With a wait after each launch nothing runs ahead: after each kernel the GPU is idle until the host has returned from
the wait and launched the next one."""
evidence = [
    "{waits:wait} and {launches:launch|launches} {per}, most of the waits in {call}",
    "{blocking_calls:launch call} {per} return only when their kernel has ended, as with CUDA_LAUNCH_BLOCKING=1",
    "the GPU is idle for {idle_ns} of {wall_ns} {per}",
]
skip_if = "The waits are there to time each kernel, to find the one that fails, or because the host uses each result."
effort = "line"
estimate = """
High: nine tenths of the idle time, while the host needs half of its time without waits. Low: half of that, while the
host needs all of that time; at least a third of the high estimate."""
links = ["CUDA C++ Programming Guide, Asynchronous Concurrent Execution"]
report = "syncs"
when = """
SELECT 1 FROM _step_totals AS t
WHERE t.has_steps AND (
    (SELECT count(*) FROM waits WHERE NOT is_copy AND copy_kind IS NULL) >= $min_ratio * t.launch_calls * t.units
    OR (
        SELECT sum(c.time_ns) - $launch_ns * sum(c.calls)
        FROM step_calls AS c JOIN _steady_windows AS s USING (step, process_id)
        WHERE c.call_group = 'launch'
    ) > t.kernel_ns * t.units
)"""

[fix.waits]
any = "Remove the waits: operations of a stream run in order. Use events for dependencies between streams."
pytorch = "Remove torch.cuda.synchronize() from the loop: operations of a stream run in order without it."
cupy = "Remove synchronize() from the loop: operations of a stream run in order without it."
numba = "Remove cuda.synchronize() from the loop: operations of a stream run in order without it."
jax = "Remove block_until_ready() from the loop: operations run in order without it."
cuda = """
Remove cudaDeviceSynchronize and cudaStreamSynchronize from the loop; use events for dependencies between streams."""
openacc = """
Add async to the compute constructs, and one wait at the end of the step (async has no effect while
NVCOMPILER_ACC_SYNCHRONOUS is set)."""
openmp = "Add nowait to the target constructs, and one taskwait at the end of the step."
kokkos = "Remove Kokkos::fence() between kernels of one execution space instance."
julia = "Remove CUDA.@sync and CUDA.synchronize() from the loop."

[fix.launches]
any = """
Unset CUDA_LAUNCH_BLOCKING if it is set. A debugger, or another tool that runs one kernel at a time, has the same
effect."""

[params]
min_ratio = [0.6, "Share of the launches with a wait after them (0.6: a library call may launch two kernels)"]
min_waits = [2, "Fewest waits in a step (2: one at its end is usual)"]
launch_ns = [5000, "Host time of a launch call that does not wait (5 µs, with the profiler)"]
max_call_ns = [100000, "Most idle time that one wait costs (100 µs: more is other work of the host)"]
*/
-- Waits that deliver no data; those of several in a row are after one launch.
WITH waits_of_steps AS (
    SELECT
        count(*)::DOUBLE AS waits, mode(w.name) AS call,
        count(*) FILTER (w.waited_ns IS NULL OR l.api_start_ns >= w.waited_ns) AS after_launches
    FROM (
        SELECT *, lag(end_ns) OVER (PARTITION BY process_id, thread_id ORDER BY start_ns) AS waited_ns
        FROM waits WHERE NOT is_copy AND copy_kind IS NULL
    ) AS w
    ASOF JOIN launches AS l
        ON l.process_id = w.process_id AND l.thread_id = w.thread_id AND l.api_start_ns <= w.start_ns
    ASOF JOIN _steady_windows AS s ON s.process_id = w.process_id AND s.host_start_ns <= w.start_ns
    WHERE w.start_ns < s.host_end_ns
),
-- Launch calls that take longer than the kernels: only then may they wait for them.
slow_calls AS (
    SELECT sum(c.time_ns)::DOUBLE AS call_ns
    FROM step_calls AS c JOIN _steady_windows AS s USING (step, process_id)
    CROSS JOIN _step_totals AS t
    WHERE c.call_group = 'launch'
    HAVING call_ns > any_value(t.kernel_ns * t.units)
),
-- Where the clock of the GPU is off, kernels end before their call returns although it does not wait: they then begin
-- before it. A call of a slow host outlasts a kernel of a few microseconds, too.
blocking_calls AS (
    SELECT
        count(*) FILTER (l.is_around)::DOUBLE AS calls, sum(l.api_duration_ns)::DOUBLE AS call_ns,
        avg(l.is_around::INTEGER) FILTER (l.duration_ns >= $launch_ns) AS long_share
    FROM (
        SELECT *, api_start_ns <= start_ns AND api_end_ns >= end_ns AS is_around
        FROM launches WHERE call_group = 'launch' AND EXISTS (FROM slow_calls)
    ) AS l
    ASOF JOIN _steady_windows AS s ON s.process_id = l.process_id AND s.host_start_ns <= l.api_start_ns
    WHERE l.api_start_ns < s.host_end_ns
    HAVING calls > 0 AND calls >= 0.9 * count(*) AND long_share >= 0.9
),
-- What the host spends in MPI calls stays without the waits.
messages AS (
    SELECT coalesce(sum(idle_ns), 0)::DOUBLE AS idle_ns FROM step_idle WHERE host = 'MPI calls'
),
costs AS (
    SELECT
        t.*, w.waits, w.call, b.calls, m.idle_ns / t.units AS message_ns,
        0.9 * least(t.idle_ns - message_ns, $max_call_ns * coalesce(b.calls, w.waits) / t.units) AS gap_ns,
        t.host_floor_ns - coalesce(greatest(b.call_ns - $launch_ns * b.calls, 0) / t.units, 0) AS floor_ns
    FROM waits_of_steps AS w CROSS JOIN _step_totals AS t CROSS JOIN messages AS m
    LEFT JOIN blocking_calls AS b ON true
    WHERE t.has_steps
        AND (
            w.waits >= $min_waits * t.units AND w.after_launches >= $min_ratio * t.launch_calls * t.units
            OR b.calls >= $min_waits * t.units
        )
)
SELECT
    least(gap_ns, wall_ns - floor_ns / 2) AS recoverable_ns,
    greatest(least(gap_ns / 2, wall_ns - floor_ns), recoverable_ns / 3) AS saving_low_ns,
    100 * recoverable_ns / wall_ns AS wall_pct,
    NULL AS place,
    CASE WHEN calls IS NULL THEN 'waits' ELSE 'launches' END AS cure_case,
    CASE WHEN calls IS NULL THEN waits / units END AS waits, launch_calls AS launches, call,
    calls / units AS blocking_calls, idle_ns, wall_ns,
    ['start', 'wait', 'alternating', 'fusion'] || if(2 * message_ns > idle_ns, [], ['late-host']) AS explains
FROM costs
WHERE recoverable_ns > 0
