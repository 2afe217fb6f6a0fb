/*
code = "NSI603"
title = "The GPU is idle at the start"
family = "outside"
share_of = "trace"
meaning = """
The first operation on the GPU begins long after the first CUDA call. Programs usually create contexts, load modules,
allocate memory and read data in that time."""
evidence = [
    "the first operation on the GPU begins {idle_ns} after the start",
    "until then: {longest_calls}",
    "{outside_calls_ns} outside of CUDA calls",
    "of {samples:CPU sample} in this time: {functions}",
]
skip_if = "Startup is what you are measuring."
effort = "flag"
links = ["Nsight Systems User Guide, CLI Profile Command Switch Options: --capture-range, --delay"]
report = "idle"
when = "SELECT 1 FROM idle_report WHERE host = 'before the first operation' HAVING min(wall_pct) >= $min_pct"

[items]
longest_calls = ["{call_ns} in {call_name}"]
functions = [["{samples_pct} in {function_name} (called by {callers})", "{samples_pct} in {function_name}"]]

[fix.context]
any = """
{first_ns} of it is in {first_call}, the first long call, which includes the creation of the context, once per
process. Do more work in one process, keep the driver loaded (nvidia-smi -pm 1), and of several GPUs make only
one visible (CUDA_VISIBLE_DEVICES)."""

[fix.jit]
any = """
The driver compiles PTX for this GPU ({jit_pct} of the samples are in its compiler): compile the program for it (nvcc
-arch=native, or -gencode for its compute capability). The driver's cache keeps the result only for the next run
(CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE)."""

[fix.first]
any = """
{first_ns} of it is in {first_call}, the call of the first operation, which sets up what later ones use. Make one small
call of its kind before the part that is measured."""

[fix.calls]
any = """
See which of these calls the first GPU work needs (nsys-insight api); make the others later, or once per
process."""

[fix.sampled]
any = """
Do the work of these functions in parallel, once per process, or after the first GPU work (nsys-insight cpu-work)."""

[fix.outside]
any = """
See what the program does before its first GPU operation (--sample=process-tree): do it in parallel, once per
process, or after the first GPU work."""

[fix.steps]
any = "Capture only the steady state: nsys profile --delay, or --capture-range=nvtx --nvtx-capture=RANGE."
pytorch = """
Capture only the steady state: torch.cuda.profiler.start() after the warm-up, and nsys profile
--capture-range=cudaProfilerApi."""
cupy = """
Capture only the steady state: cupyx.profiler.profile() around the steps, and nsys profile
--capture-range=cudaProfilerApi."""
numba = """
Capture only the steady state: cuda.profile_start() after the warm-up, and nsys profile
--capture-range=cudaProfilerApi."""
cuda = """
Capture only the steady state: cudaProfilerStart() after the warm-up, and nsys profile
--capture-range=cudaProfilerApi."""
julia = """
Capture only the steady state: CUDA.@profile external=true around the steps, and nsys profile
--capture-range=cudaProfilerApi."""

[params]
min_pct = [5.0, "Share of the trace's wall time from which this is reported (5: what is common with a capture range)"]
main_pct = [50.0, "Share of the wall time from which start-up is what bounds a trace without steps (50: most of it)"]
jit_pct = [25.0,
    "Share of the CPU samples in the driver's PTX compiler from which start-up is compilation (25: the largest part)"]
context_ns = [10000000,
    "Shortest first call that creates a context (10 ms: a context takes longer, nearly all other calls take less)"]
*/
WITH idle AS MATERIALIZED (
    SELECT min(time_ns) AS idle_ns, min(wall_pct) AS wall_pct
    FROM idle_report
    WHERE host = 'before the first operation' AND EXISTS (FROM scope WHERE nvtx IS NULL AND from_ns IS NULL)
    -- All GPUs are idle until then.
    HAVING min(wall_pct) >= $min_pct AND count(*) = (SELECT count(DISTINCT gpu_id) FROM idle_report)
),
idle_times AS MATERIALIZED (
    SELECT NULL AS from_ns, min(start_ns) AS until_ns FROM _gpu_busy_parts WHERE EXISTS (FROM idle) HAVING count(*) > 0
),
-- The call that creates the context: the first one that takes long. After a launch, the context exists: a capture range
-- may begin while the GPU runs, and the first long call then waits for work that has no rows.
first_work AS (
    SELECT name, call_group, duration_ns::DOUBLE AS duration_ns FROM outer_api_calls, idle_times
    WHERE start_ns < until_ns AND (duration_ns >= $context_ns OR regexp_matches(name, '^(cuda|cu)Launch'))
    ORDER BY start_ns LIMIT 1
)
SELECT
    w.samples, w.functions,
    list_sum(list_transform(
        list_filter(w.functions, lambda f: f.function_name LIKE '%ptxjitcompiler%'), lambda f: f.samples_pct
    )) AS jit_pct,
    NULL AS recoverable_ns,
    i.wall_pct,
    NULL AS place,
    -- Without steps, nothing shows a steady state that the capture could be narrowed to.
    CASE
        WHEN t.has_steps AND (w.samples IS NULL OR i.wall_pct < $main_pct) THEN 'steps'
        WHEN jit_pct >= $jit_pct THEN 'jit'
        -- Calls of the driver do not create contexts, except those whose names say so.
        WHEN 2 * f.duration_ns >= i.idle_ns AND regexp_matches(f.name, '^cuda|^cu(CtxCreate|DevicePrimaryCtxRetain)')
            THEN 'context'
        WHEN 2 * f.duration_ns >= i.idle_ns AND f.call_group IN ('copy', 'memset', 'launch') THEN 'first'
        WHEN 2 * c.covered_ns >= i.idle_ns THEN 'calls'
        WHEN w.samples > 0 THEN 'sampled'
        ELSE 'outside'
    END AS cure_case,
    CASE
        WHEN NOT t.has_steps AND i.wall_pct >= $main_pct THEN 'critical'
        -- Known work before steps, most of the trace: what it is can be changed, unless the capture is short.
        WHEN w.samples > 0 AND i.wall_pct >= $main_pct THEN 'warning'
    END AS severity,
    f.name AS first_call,
    f.duration_ns AS first_ns,
    i.idle_ns,
    -- call_name, call_ns. Calls of less than a hundredth of it and other time of less than a tenth are not stated.
    nullif(list_filter(c.longest_calls, lambda call: 100 * call.call_ns >= i.idle_ns), []) AS longest_calls,
    CASE WHEN 10 * (i.idle_ns - c.covered_ns) >= i.idle_ns THEN i.idle_ns - c.covered_ns END AS outside_calls_ns
FROM idle AS i, _step_totals AS t, _calls_in('idle_times') AS c
LEFT JOIN first_work AS f ON true
LEFT JOIN (FROM _edge_functions WHERE edge = 'start') AS w ON true
