/*
code = "NSI601"
title = "Outliers take longer than the median step"
family = "steps"
overlaps = true
meaning = "These steps take more than a tenth longer than the median step, and more than steps usually vary."
evidence = [
    [
        "{?has_several}{outliers} of {steady_steps} steps take {outlier_ns} on average, the median step {median_ns}",
        "{outliers} of {steady_steps} steps takes {outlier_ns}, the median step {median_ns}",
    ],
    [
        "{?has_several}the GPU is then idle {more_idle_ns} and busy {more_busy_ns} longer on average",
        "{?has_several}the GPU is then idle {more_idle_ns} longer on average",
        "{?has_several}the GPU is then busy {more_busy_ns} longer on average",
        "the GPU is then idle {more_idle_ns} and busy {more_busy_ns} longer",
        "the GPU is then idle {more_idle_ns} longer",
        "the GPU is then busy {more_busy_ns} longer",
    ],
    "{?has_several}the longest takes {longest_ns}",
    "the longest has {longest_kernels:kernel}, the median step {median_kernels}",
    "the longest allocates or frees memory {longest_allocations:time}, the median step {median_allocations}",
    "the longest waits for the GPU {longest_waits:time}, the median step {median_waits}",
]
skip_if = """
They do different work, such as a prefill among decode steps; or there is no work in them: a server without
requests."""
effort = "function"
estimate = "What the outliers take longer than the median step, divided by the number of all steady steps."
example = "tests/data/ranks/pipe_rank0.sqlite"
report = "steps"
when = "SELECT 1 FROM steps WHERE phase = 'steady' AND is_outlier LIMIT 1"

[fix.idle]
any = """
Find out what the host does only in them (gaps with --from and --to): logging, a checkpoint, an allocation, a first
call. Move it to another thread or out of the loop."""
pytorch = """
Find out what the host does only in them (gaps with --from and --to). Save checkpoints in the background
(torch.distributed.checkpoint.async_save), log in another thread, shorten garbage collection (gc.freeze() after
set-up), pad inputs to a few shapes."""
inductor = """
Find out what the host does only in them (gaps with --from and --to). A new shape compiles again: use dynamic=True or
pad inputs to a few shapes (TORCH_LOGS=recompiles lists them). Save checkpoints in the background."""
jax = """
Find out what the host does only in them (gaps with --from and --to). A new shape compiles again: pad inputs to a few
shapes (jax_log_compiles lists them). Save checkpoints asynchronously."""
cuda = """
Find out what the host does only in them (gaps with --from and --to): files written in the loop, cudaMalloc and
cudaFree, modules that load at their first use. Do that in another thread or before the loop."""
python = """
Find out what the host does only in them (gaps with --from and --to): files written in the loop, garbage collection,
new shapes that compile. Do that in another thread or outside of the loop."""
julia = """
Find out what the host does only in them (gaps with --from and --to): garbage collection, memory that is reclaimed,
compilation of a method at its first call. Reuse arrays, and call each kernel once before the loop."""

[fix.busy]
any = """
Find out what the GPU runs longer in them (diff of a slow and a usual step). Other kernels or shapes: move the work
out of the loop. The same kernels, only slower: check the clock rate, power and temperature, and other programs on the
GPU."""

[params]
min_part_pct = [10.0, "Idle and busy time are stated from this share of the time that outliers take longer"]
min_idle_share = [0.8, "Share of the idle time of all steps from which outliers are the cause of it"]
*/
WITH steady_steps AS (
    SELECT *, mallocs + frees AS allocations FROM steps WHERE phase = 'steady'
),
step_medians AS (
    SELECT
        count(*) AS steady_steps, sum(duration_ns) AS all_ns, median(duration_ns) AS median_ns,
        median(gpu_idle_ns) AS idle_ns, median(gpu_busy_ns) AS busy_ns, sum(gpu_idle_ns) AS all_idle_ns,
        quantile_disc(kernels, 0.5) AS median_kernels, quantile_disc(allocations, 0.5) AS median_allocations,
        quantile_disc(sync_points, 0.5) AS median_waits, quantile_disc(launch_calls, 0.5) AS median_launches
    FROM steady_steps
),
-- A step with the launches of several in the time of as many is several steps whose bounds were not found.
longer_steps AS (
    SELECT s.*
    FROM steady_steps AS s, step_medians AS u
    WHERE s.is_outlier
        AND s.duration_ns > u.median_ns * coalesce(greatest(1, round(s.launch_calls / nullif(u.median_launches, 0))), 1)
),
longest_step AS (
    FROM longer_steps ORDER BY duration_ns DESC, step LIMIT 1
),
outliers AS (
    SELECT
        count(*) AS outliers, avg(l.duration_ns) AS outlier_ns, avg(l.duration_ns - u.median_ns) AS more_ns,
        avg(l.gpu_idle_ns - u.idle_ns) AS more_idle_ns, avg(l.gpu_busy_ns - u.busy_ns) AS more_busy_ns
    FROM longer_steps AS l, step_medians AS u
    HAVING count(*) > 0
)
SELECT
    o.outliers * o.more_ns / u.steady_steps / (SELECT tokens_per_step FROM step_method) AS recoverable_ns,
    100 * o.outliers * o.more_ns / u.all_ns AS wall_pct,
    format('step {}, at {:.3f} ms', l.step, l.start_ns / 1e6) AS place,
    CASE WHEN o.more_busy_ns > o.more_idle_ns THEN 'busy' ELSE 'idle' END AS cure_case,
    CASE
        WHEN o.outliers * o.more_idle_ns >= $min_idle_share * u.all_idle_ns THEN ['late-host', 'start']
        ELSE []
    END AS explains,
    o.outliers,
    o.outliers > 1 AS has_several,
    u.steady_steps,
    o.outlier_ns,
    u.median_ns,
    l.duration_ns AS longest_ns,
    CASE WHEN o.more_idle_ns >= $min_part_pct / 100 * o.more_ns THEN o.more_idle_ns END AS more_idle_ns,
    CASE WHEN o.more_busy_ns >= $min_part_pct / 100 * o.more_ns THEN o.more_busy_ns END AS more_busy_ns,
    nullif(l.kernels, u.median_kernels) AS longest_kernels,
    u.median_kernels,
    nullif(l.allocations, u.median_allocations) AS longest_allocations,
    u.median_allocations,
    nullif(l.sync_points, u.median_waits) AS longest_waits,
    u.median_waits
FROM outliers AS o, step_medians AS u, longest_step AS l
