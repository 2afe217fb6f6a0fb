/*
code = "NSI602"
title = "Most of the trace is outside the steps"
family = "outside"
share_of = "trace"
meaning = """
Figures per step describe only the steady steps. Startup, prefill or evaluation outside of them is not included."""
evidence = [
    "{steps:steady step takes|steady steps take} {steps_ns} of {trace_ns}",
    [
        "{?has_several_gpus}in the trace the GPUs are busy {trace_busy_pct} of the time on average",
        "in the trace the GPU is busy {trace_busy_pct} of the time",
    ],
]
skip_if = "The loop runs much longer than the capture: then the steps matter most."
effort = "flag"
links = ["Nsight Systems User Guide, CLI Profile Command Switch Options: --capture-range"]
example = "sample_traces/churn.sqlite"
report = "steps"

[fix]
any = """
Analyze the rest with --from and --to. Or capture only the steps: nsys profile --capture-range=nvtx
--nvtx-capture=RANGE, or --capture-range=cudaProfilerApi."""
pytorch = """
Analyze the rest with --from and --to. Or capture only the steps: torch.cuda.profiler.start() and stop() around them,
and nsys profile --capture-range=cudaProfilerApi."""
cupy = """
Analyze the rest with --from and --to. Or capture only the steps: cupyx.profiler.profile() around them, and nsys
profile --capture-range=cudaProfilerApi."""
numba = """
Analyze the rest with --from and --to. Or capture only the steps: cuda.profile_start() and cuda.profile_stop() around
them, and nsys profile --capture-range=cudaProfilerApi."""
cuda = """
Analyze the rest with --from and --to. Or capture only the steps: cudaProfilerStart() and cudaProfilerStop() around
them, and nsys profile --capture-range=cudaProfilerApi."""
julia = """
Analyze the rest with --from and --to. Or capture only the steps: CUDA.@profile external=true around them, and nsys
profile --capture-range=cudaProfilerApi."""

[params]
min_pct = [50.0, "Share of the trace's wall time outside the steady steps from which this is reported (50: most of it)"]
*/
WITH trace_time AS (
    SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns, sum(duration_ns)::BIGINT AS trace_ns FROM wall
),
-- The NVTX range of a step may begin before the first CUDA event and end after the last.
step_time AS (
    SELECT
        count(*) AS steps,
        sum(greatest(least(s.end_ns, t.end_ns) - greatest(s.start_ns, t.start_ns), 0))::BIGINT AS steps_ns
    FROM steps AS s, trace_time AS t
    WHERE s.phase = 'steady'
),
busy_time AS (
    SELECT avg(wall_pct) AS trace_busy_pct, count(*) > 1 AS has_several_gpus FROM idle_report WHERE cause = 'busy'
)
SELECT
    NULL AS recoverable_ns,
    100.0 * (t.trace_ns - s.steps_ns) / t.trace_ns AS wall_pct,
    NULL AS place,
    s.steps,
    s.steps_ns,
    t.trace_ns,
    b.trace_busy_pct,
    b.has_several_gpus
FROM step_time AS s, trace_time AS t, busy_time AS b
WHERE 100.0 * (t.trace_ns - s.steps_ns) >= $min_pct * t.trace_ns
    AND EXISTS (FROM scope WHERE nvtx IS NULL AND from_ns IS NULL)
