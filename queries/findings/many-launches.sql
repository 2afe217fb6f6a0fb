/*
code = "NSI102"
title = "The GPU waits for launch calls"
family = "launch"
symptom = "late-host"
shortens_kernels = true
meaning = """
The host launches kernels more slowly than the GPU runs them, so the GPU is idle in between. A CUDA graph would save
little, or no repeating steps were found."""
evidence = [
    ["the GPU is idle for {idle_ns}: {idle_parts}", "the GPU is idle for {idle_ns}"],
    "{launch_calls:launch call} {per} at {launch_call_ns} each",
]
skip_if = "The CPU keeps ahead of the GPU without the profiler."
effort = "function"
estimate = "The idle time of the GPU before the launches, and what is left of it without nsys."
report = "classify"
when = """
SELECT 1 FROM classify_report
WHERE part = 'launch' AND see = 'graph-candidates'
    AND NOT EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')"""

[fix.waits]
any = """
The host waits about as often as it launches, so each launch shows its latency: remove waits and read-backs, so that the
host launches ahead."""

[fix.launches]
any = "Launch fewer, larger kernels: batch, fuse, or use one library call for all of it."
pytorch = "Compile the model (torch.compile), batch the work, or use the foreach and fused variants of operations."
jax = """
Put the whole step under one jax.jit; within it, replace loops of small iterations by jax.vmap, or for a linear
recurrence by jax.lax.associative_scan."""
cupy = "Fuse operations: cupy.fuse, ElementwiseKernel or RawKernel."
openacc = "Merge small parallel regions, and launch them with async."
openmp = "Merge small target regions, and launch them with nowait."

[params]
min_waits = [0.8, "Waits per launch from which the waits are why launches are late (0.8, as in sync-each-launch)"]
least_wait_ns = [2000,
    "A call that takes less time does not wait: what it is for has ended, or it is for another stream"]
slow_launch_ns = [100000,
    "Idle time per launch call above which a few slow launches are the cause, not their number (as in slow-launches)"]
*/
-- Per token, as the idle time; where no steps were found, the calls of the scope.
WITH launch_totals AS (
    SELECT single_launches / tokens_per_step AS calls, launch_call_ns AS call_ns
    FROM graph_candidates_report, step_method
    UNION ALL
    SELECT count(*), avg(duration_ns)
    FROM api_calls
    WHERE call_group IN ('launch', 'graph launch') AND NOT EXISTS (FROM graph_candidates_report)
)
SELECT
    l.recoverable_ns,
    -- Without nsys, less is left of it (nsys_insight/diagnose/unprofiled.py).
    CASE WHEN EXISTS (FROM unprofiled_step WHERE source IS NOT NULL) THEN l.recoverable_ns END AS saving_low_ns,
    100 * l.recoverable_ns / w.time_ns AS wall_pct,
    NULL AS place,
    CASE
        WHEN s.has_steps AND s.sync_calls >= $min_waits * s.launch_calls
            AND (SELECT median(wait_ns) FROM waits) >= $least_wait_ns
            THEN 'waits'
        ELSE 'launches'
    END AS cure_case,
    l.time_ns AS idle_ns,
    nullif(l.evidence, '') AS idle_parts,
    t.calls AS launch_calls,
    t.call_ns AS launch_call_ns
FROM (FROM classify_report WHERE part = 'launch') AS l
CROSS JOIN (FROM classify_report WHERE part = 'wall') AS w
CROSS JOIN _step_totals AS s
LEFT JOIN (FROM launch_totals WHERE calls > 0) AS t ON true
WHERE l.see = 'graph-candidates' AND NOT EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')
    AND NOT EXISTS (FROM launch_totals WHERE calls > 0 AND calls * $slow_launch_ns <= l.time_ns)
