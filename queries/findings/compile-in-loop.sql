/*
code = "NSI115"
title = "Code is loaded or built again inside the loop"
family = "compile"
is_host_work = true
explains = ["late-host", "start", "outlier-steps", "op-by-op", "host-input", "host-stage"]
meaning = """
Modules or libraries of kernels are loaded in several steps after the first one: kernels or plans are built again, as
for each new shape, or used for the first time."""
evidence = [
    "{load_steps} of {steps:step} load code: {loads:call} of {calls}",
    [
        "such a step takes {load_step_ns} on average, the others {ordinary_ns} (median)",
        "such a step takes {load_step_ns} on average",
    ],
    "the loads, each with the time since the CUDA call before it, take {build_ns} {per}",
    "the first kernel after a load is mostly {kernel}",
    "each of the {load_threads:thread} that load code does so in one step only",
]
skip_if = "The new shapes end: then let the program warm up with all of them before it is measured."
effort = "function"
estimate = """
High: the time of these steps above the median of the others, over all steps; the idle time of the GPU, if all steps
load code. Low: 60% of it; of the loads and the time since the CUDA call before each, if all steps load."""
links = ["PyTorch documentation, torch.compile: Dynamic shapes", "CUDA C++ Programming Guide, Lazy Loading"]
report = "steps"
when = "SELECT 1 FROM _call_counts WHERE regexp_matches(name, '^cu(da)?(Library|Module)Load')"

[fix.threads]
any = """
Run the steps in the same thread, or in a pool of threads that lives as long as the loop: a library that keeps its plans
by thread builds them again in each new one."""
pytorch = """
Run the steps in the same thread, or in a pool of threads that lives as long as the loop: cuDNN's plans for attention
are kept by thread, and each new one builds them again. Or call torch.backends.cuda.enable_cudnn_sdp(False)."""

[fix.shapes]
any = "Pad or bucket the sizes, so that few shapes occur, and run each of them once before the loop."
pytorch = """
Pad or bucket the sizes, such as sequence lengths, and run each once before the loop. Compile kernels of your own once,
and pass what changes as arguments. If cuDNN builds its plans again, call
torch.backends.cuda.enable_cudnn_sdp(False)."""
inductor = "Compile with torch.compile(dynamic=True), or pad or bucket the sizes."
jax = """
Pad or bucket the sizes, and pass values that change as arrays: jax.jit compiles again for each new shape and each new
value of a static argument."""
cupy = """
Build RawKernel and RawModule once, outside of the loop; avoid new constants in ElementwiseKernel code. For transforms
of many lengths, enlarge CuPy's cache of FFT plans, or pad them to few lengths."""
numba = "Compile before the loop: call the kernel once for each signature, or give cuda.jit the signature."
cuda = "Load modules and build plans (cuDNN, cuFFT) once, and keep them by shape."

[params]
min_steps = [2, "Fewest steps after the first one that load code (2: a single one may be the first use of a kernel)"]
min_threads = [3, "New threads are the reason if at least this many threads load code, each of them in one step only"]
*/
WITH steady_steps AS (
    -- The end of the tail is not recorded.
    SELECT
        step, host_start_ns, host_end_ns, process_id, CASE WHEN phase = 'steady' THEN duration_ns END AS duration_ns
    FROM steps WHERE phase IN ('steady', 'tail')
),
-- The code is built between the last call before and the load.
builds AS (
    SELECT c.process_id, c.name, c.start_ns, c.end_ns, c.end_ns - coalesce(p.end_ns, c.start_ns) AS build_ns
    FROM (FROM outer_api_calls WHERE regexp_matches(name, '^cu(da)?(Library|Module)Load')) AS c
    ASOF LEFT JOIN (SELECT process_id, thread_id, start_ns, end_ns FROM outer_api_calls) AS p
        ON p.process_id = c.process_id AND p.thread_id = c.thread_id AND p.start_ns < c.start_ns
),
loads AS (
    SELECT s.step, count(*) AS loads, any_value(c.name) AS call, max(c.end_ns) AS end_ns, sum(c.build_ns) AS build_ns
    FROM builds AS c
    ASOF JOIN steady_steps AS s ON s.process_id = c.process_id AND s.host_start_ns <= c.start_ns
    WHERE c.start_ns < s.host_end_ns GROUP BY s.step
),
-- XLA names the modules that it compiles.
compile_ranges AS (
    SELECT coalesce(sum(r.end_ns - r.start_ns), 0) AS compile_ns
    FROM (FROM nvtx_ranges WHERE name LIKE 'XlaCompile:%') AS r
    ASOF JOIN steady_steps AS s ON s.process_id = r.process_id AND s.host_start_ns <= r.start_ns
    WHERE r.start_ns < s.host_end_ns AND s.duration_ns IS NOT NULL
),
first_kernels AS (
    SELECT kernel_base_name(mode(n.name)) AS kernel
    FROM (FROM loads) AS l
    ASOF JOIN (SELECT api_start_ns, name_id FROM launches) AS k ON k.api_start_ns >= l.end_ns
    JOIN kernel_names AS n USING (name_id)
),
medians AS (
    SELECT count(*) AS steps, sum(duration_ns)::DOUBLE AS all_ns,
        median(duration_ns) FILTER (l.step IS NULL) AS ordinary_ns
    FROM steady_steps AS s LEFT JOIN loads AS l USING (step)
),
load_totals AS (
    SELECT
        count(*) AS load_steps, sum(l.loads) AS loads, mode(l.call) AS calls,
        avg(s.duration_ns) AS load_step_ns, sum(greatest(s.duration_ns - m.ordinary_ns, 0)) AS excess_ns,
        greatest(sum(l.build_ns) FILTER (s.duration_ns IS NOT NULL), (SELECT compile_ns FROM compile_ranges))::DOUBLE
            AS build_ns
    FROM loads AS l JOIN steady_steps AS s USING (step), medians AS m
    -- The first step may use the code for the first time.
    HAVING count(*) FILTER (step > 0) >= $min_steps
)
SELECT
    m.ordinary_ns IS NULL AS is_every_step,
    t.wall_ns * l.build_ns / m.all_ns AS build_ns,
    CASE WHEN is_every_step THEN t.idle_ns ELSE t.wall_ns * l.excess_ns / m.all_ns END AS recoverable_ns,
    0.6 * CASE WHEN is_every_step THEN least(t.wall_ns * l.build_ns / m.all_ns, t.idle_ns) ELSE recoverable_ns END
        AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct, NULL AS place,
    -- Each thread loads code in one step, and no step has two of them.
    if(n.threads = n.steps AND n.pairs = n.steps AND n.threads >= $min_threads, n.threads, NULL) AS load_threads,
    CASE WHEN load_threads IS NOT NULL THEN 'threads' ELSE 'shapes' END AS cure_case,
    l.load_steps, m.steps, l.loads, l.calls, l.load_step_ns, m.ordinary_ns, k.kernel
FROM load_totals AS l, medians AS m, first_kernels AS k, _step_totals AS t, _loading_threads AS n
WHERE t.has_steps
    AND CASE
        WHEN m.ordinary_ns IS NULL THEN 2 * t.wall_ns * l.build_ns / m.all_ns >= t.idle_ns
        ELSE l.excess_ns > 0
    END
