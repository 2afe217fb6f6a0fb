/*
code = "NSI604"
title = "The GPU is idle at the end"
family = "outside"
share_of = "trace"
meaning = """
CUDA calls continue long after the last operation on the GPU. Programs usually process results and release memory and
contexts in that time."""
evidence = [
    "the last operation on the GPU ends {idle_ns} before the end",
    "from then on: {longest_calls}",
    "{outside_calls_ns} outside of CUDA calls",
    "of {samples:CPU sample} in this time: {functions}",
]
skip_if = "The end is what you are measuring."
effort = "flag"
links = ["Nsight Systems User Guide, CLI Profile Command Switch Options: --capture-range, --duration"]
report = "idle"
when = "SELECT 1 FROM idle_report WHERE host = 'after the last operation' HAVING min(wall_pct) >= $min_pct"

[items]
longest_calls = ["{call_ns} in {call_name}"]
functions = [["{samples_pct} in {function_name} (called by {callers})", "{samples_pct} in {function_name}"]]

[fix.calls]
any = """
See what the program does after its last GPU operation: memory and contexts that the process holds at its end are
released with it."""

[fix.sampled]
any = """
Do the work of these functions in parallel, or while the GPU still works (nsys-insight cpu-work); memory and contexts
that the process holds at its end are released with it."""

[fix.steps]
any = "Capture only the steady state: nsys profile --duration, or --capture-range=nvtx --nvtx-capture=RANGE."
pytorch = """
Capture only the steady state: torch.cuda.profiler.stop() after the last step, and nsys profile
--capture-range=cudaProfilerApi."""
cupy = """
Capture only the steady state: cupyx.profiler.profile() around the steps, and nsys profile
--capture-range=cudaProfilerApi."""
numba = """
Capture only the steady state: cuda.profile_stop() after the last step, and nsys profile
--capture-range=cudaProfilerApi."""
cuda = """
Capture only the steady state: cudaProfilerStop() after the last step, and nsys profile
--capture-range=cudaProfilerApi."""
julia = """
Capture only the steady state: CUDA.@profile external=true around the steps, and nsys profile
--capture-range=cudaProfilerApi."""

[params]
min_pct = [5.0, "Share of the trace's wall time from which this is reported (5: as at the start)"]
*/
WITH idle AS MATERIALIZED (
    SELECT min(time_ns) AS idle_ns, min(wall_pct) AS wall_pct
    FROM idle_report
    WHERE host = 'after the last operation' AND EXISTS (FROM scope WHERE nvtx IS NULL AND to_ns IS NULL)
    -- All GPUs are idle from then on.
    HAVING min(wall_pct) >= $min_pct AND count(*) = (SELECT count(DISTINCT gpu_id) FROM idle_report)
),
idle_times AS MATERIALIZED (
    SELECT max(end_ns) AS from_ns, NULL AS until_ns FROM _gpu_busy_parts WHERE EXISTS (FROM idle) HAVING count(*) > 0
)
SELECT
    w.samples, w.functions,
    NULL AS recoverable_ns,
    i.wall_pct,
    NULL AS place,
    CASE
        WHEN EXISTS (FROM steps WHERE phase = 'steady') THEN 'steps'
        WHEN w.samples > 0 AND 2 * c.covered_ns < i.idle_ns THEN 'sampled'
        ELSE 'calls'
    END AS cure_case,
    i.idle_ns,
    -- call_name, call_ns. Calls of less than a hundredth of it and other time of less than a tenth are not stated.
    nullif(list_filter(c.longest_calls, lambda call: 100 * call.call_ns >= i.idle_ns), []) AS longest_calls,
    CASE WHEN 10 * (i.idle_ns - c.covered_ns) >= i.idle_ns THEN i.idle_ns - c.covered_ns END AS outside_calls_ns
FROM idle AS i, _calls_in('idle_times') AS c
LEFT JOIN (FROM _edge_functions WHERE edge = 'end') AS w ON true
-- While the host waits for the GPU, the GPU runs something that is not in the trace.
WHERE NOT coalesce(
    api_group(c.longest_calls[1].call_name) = 'sync' AND 2 * c.longest_calls[1].call_ns >= i.idle_ns, false
)
