/*
code = "NSI104"
title = "The GPU waits long for launches"
family = "launch"
is_host_work = true
symptom = "start"
meaning = """
A launch takes microseconds. Here the GPU waits much longer for each launch on average, so their number is not what
costs."""
evidence = [
    ["the GPU is idle for {idle_ns}: {idle_parts}", "the GPU is idle for {idle_ns}"],
    "{launch_calls:launch call} {per}",
    "most of the idle time passes in other CUDA calls; those with the most time in total: {longest_calls}",
]
skip_if = "There is only this one run."
effort = "function"
estimate = "The idle time of the GPU before the launches."
links = ["CUDA C++ Programming Guide, Lazy Loading"]
report = "classify"
when = """
SELECT 1 FROM classify_report
WHERE part = 'launch' AND see = 'graph-candidates'
    AND NOT EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')"""

[items]
longest_calls = ["{call_name} {call_ns}"]

[fix.start]
any = """
Run the work once before the part that is measured: the first launch of a kernel loads or compiles its code
(CUDA_MODULE_LOADING=EAGER loads it at start), and the first call of a library initializes it."""
pytorch = """
Run a few iterations before the part that is measured: the first launch of a kernel loads its code, and the first call
of cuBLAS or cuDNN initializes the library."""
inductor = """
Call the compiled function once with each shape before the part that is measured: the first call compiles it."""
jax = """
Call the function once before the part that is measured, and wait for its result (block_until_ready()): the first call
compiles it. jax_compilation_cache_dir keeps compiled code on disk."""
numba = "Launch each kernel once before the part that is measured: the first launch compiles it."
julia = "Call each function once before the part that is measured: the first call compiles its kernels."

[fix.step]
any = """
See what the host does before these launches: nsys-insight gaps. The time is that of steady steps, not of start-up."""

[fix.call]
any = """
The launch calls themselves take long. The first launch of a kernel loads its code, and waits until the GPU is idle if
its stack needs more local memory than any before: launch each kernel once before the loop."""

[fix.latency]
any = """
The launch calls have returned before. Look for another process that uses the GPU at the same time (nvidia-smi). On
Windows, WDDM submits launches in batches; TCC and MCDM do not."""

[params]
slow_launch_ns = [100000,
    "Idle time per launch call from which a launch counts as slow (a stall, as in stall-place; a launch takes 5 µs)"]
*/
-- Per token, as the idle time; where no steps were found, the calls of the scope.
WITH launch_totals AS (
    SELECT single_launches / tokens_per_step AS calls FROM graph_candidates_report, step_method
    UNION ALL
    SELECT count(*)
    FROM api_calls
    WHERE call_group IN ('launch', 'graph launch') AND NOT EXISTS (FROM graph_candidates_report)
),
longest_calls AS (
    SELECT name AS call_name, sum(duration_ns)::BIGINT AS call_ns
    FROM outer_api_calls
    WHERE call_group NOT IN ('sync', 'copy', 'alloc', 'free', 'launch', 'graph launch')
    GROUP BY name
    ORDER BY call_ns DESC, name
    LIMIT 2
),
-- Whether most of the time in which the host is late is in calls other than the launch that the GPU waits for, and
-- whether most of it comes after this launch.
shares AS (
    SELECT
        coalesce(sum(time_ns) FILTER (host = 'API calls'), 0) > 0.5 * sum(time_ns) AS is_other_calls,
        coalesce(sum(time_ns) FILTER (host = 'launch latency'), 0) > 0.5 * sum(time_ns) AS is_latency,
        coalesce(sum(time_ns) FILTER (host = 'launch call in progress'), 0) > 0.5 * sum(time_ns) AS is_call
    FROM step_budget
    WHERE part = 'launch'
)
SELECT
    l.recoverable_ns,
    100 * l.recoverable_ns / w.time_ns AS wall_pct,
    NULL AS place,
    CASE
        WHEN o.is_latency THEN 'latency'
        WHEN o.is_call AND EXISTS (FROM steps WHERE phase = 'steady') THEN 'call'
        WHEN EXISTS (FROM steps WHERE phase = 'steady') THEN 'step'
        ELSE 'start'
    END AS cure_case,
    l.time_ns AS idle_ns,
    nullif(l.evidence, '') AS idle_parts,
    t.calls AS launch_calls,
    CASE
        WHEN o.is_other_calls
            THEN (
                SELECT list({'call_name': call_name, 'call_ns': call_ns} ORDER BY call_ns DESC, call_name)
                FROM longest_calls
            )
    END AS longest_calls
FROM (FROM classify_report WHERE part = 'launch') AS l, (FROM classify_report WHERE part = 'wall') AS w,
    launch_totals AS t, shares AS o
WHERE l.see = 'graph-candidates' AND NOT EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')
    AND t.calls > 0 AND t.calls * $slow_launch_ns <= l.time_ns
