/*
code = "NSI502"
title = "A rank is late, and the others wait for it"
family = "ranks"
is_cross_rank = true
overlaps = true
meaning = """
A collective completes only after its last rank has joined. Until then the kernels of the other ranks spin: their GPUs
look busy, and the time looks like communication."""
evidence = [
    [
        "rank {late_rank} is late in {late_steps} of {steps} {units} {step_numbers} by {late_ns} on average",
        "rank {late_rank} is late in {late_steps} of {steps} {units} by {late_ns} on average",
    ],
    "in {minor_steps} more by {minor_ns} on average",
    [
        "its host works {host_ns} per {unit}, that of another rank {others_host_ns}",
        "{?is_compared_with_itself}in these {units} its GPU is idle {more_idle_ns} longer than usual on average",
        "in these {units} its GPU is idle {more_idle_ns} longer than the others on average",
    ],
    [
        "{?is_compared_with_itself}its GPU is busy {busy_ratio} times as long as usual",
        "its GPU is busy {busy_ratio} times as long as the others",
    ],
    "its host in the longest gaps: {host_activity}",
    [
        "for {stretch_ns} at a stretch ({min_stretch_ns} to {max_stretch_ns}) no CUDA call, then {stretch_before}",
        "for {stretch_ns} at a stretch ({min_stretch_ns} to {max_stretch_ns}) no CUDA call",
    ],
    "the other one for {others_stretch_ns}",
    "the same launch calls take it {launch_call_ratio} times as long: its CPU is slower, or shared",
    "{?is_cause_unknown}the trace does not show why",
    [
        "{?is_compared_with_itself}the others wait {others_wait_ns} per {unit} more than usual, on average",
        "the others wait {others_wait_ns} per {unit} on average",
    ],
]
skip_if = "It does what only one rank can do, such as writing a checkpoint: then let the others continue meanwhile."
effort = "function"
estimate = """
How late the latest rank is in each step: how much longer the others wait than it does, at most what the step is longer
than the host of another rank works. Where that is the limit, high: if that host takes 55% of its time without the
profiler, except for its longest stretch outside CUDA calls; low: how much longer the late rank is outside CUDA calls at
a stretch."""
links = ["NCCL documentation, Collective Operations"]
report = "ranks"

[fix]
any = """
Diagnose the trace of that rank alone. Usual causes on one host: data that arrives late, logging, garbage collection,
CPU cores shared with other processes. Overlapping communication with computation would not help."""
pytorch = """
Diagnose the trace of that rank alone. Load data ahead (DataLoader: num_workers, prefetch_factor), log and save
without blocking, run gc.collect() at the same step on all ranks (gc.disable() in between), and bind the process to
CPU cores of its own. Overlapping communication with computation would not help."""
jax = """
Diagnose the trace of that rank alone. Prefetch the batches on each host, write checkpoints asynchronously, and read
values back at the same step on all ranks. Overlapping communication with computation would not help."""
cuda = """
Diagnose the trace of that rank alone. Read files and write logs in another thread, and bind the process to CPU cores
near its GPU (mpirun --bind-to, srun --cpu-bind, numactl). Overlapping communication with computation would not
help."""
python = """
Diagnose the trace of that rank alone. Load data ahead in another process or thread, and run gc.collect() at the same
step on all ranks (gc.disable() in between). Overlapping communication with computation would not help."""

[params]
min_ratio = [1.15,
    "A CPU is slower if the same calls take it this many times as long (a choice; two ranks differ by 5% at random)"]
min_excess_share = [0.9,
    "The host of another rank limits the delay if it is this share of what the step is longer than that host works"]
*/
WITH limits AS (
    SELECT
        wall_ns / steps - others_host_ns AS excess_ns,
        -- nsys adds at most 0.45 of the host's time (1 - least_share of profiler_costs.toml), but not outside of calls.
        least(excess_ns + 0.45 * (others_host_ns - coalesce(others_stretch_ns, 0)), waiting_ns) AS high_excess_ns,
        late_ns / steps >= $min_excess_share * excess_ns AS is_limited
    FROM _late_run
)
SELECT
    CASE WHEN is_limited THEN greatest(high_excess_ns, late_ns / steps) ELSE late_ns / steps END
    / $tokens AS recoverable_ns,
    CASE WHEN is_limited THEN least(coalesce(stretch_ns - others_stretch_ns, late_ns / steps), late_ns / steps) END
    / $tokens AS saving_low_ns,
    100 * recoverable_ns * $tokens / (wall_ns / steps) AS wall_pct,
    concat_ws(': ', names, place) AS place,
    rank::VARCHAR AS late_rank,
    main_steps AS late_steps,
    main_ns AS late_ns,
    minor_steps,
    minor_ns,
    step_numbers,
    steps,
    unit,
    unit || CASE WHEN steps > 1 THEN 's' ELSE '' END AS units,
    compared_with = 'itself' AS is_compared_with_itself,
    CASE WHEN cause IN ('host', 'both') THEN more_idle_ns END AS more_idle_ns,
    CASE cause WHEN 'both' THEN round(busy_ratio, 1) END AS busy_ratio,
    CASE WHEN host IS NOT NULL THEN concat_ws(' in ', host, place) END AS host_activity,
    cause IS NULL AS is_cause_unknown,
    CASE WHEN cause IN ('host', 'both') THEN host_ns END AS host_ns,
    others_host_ns,
    stretch_ns,
    min_stretch_ns,
    max_stretch_ns,
    stretch_before,
    others_stretch_ns,
    CASE WHEN stretch_ns IS NULL AND launch_call_ratio >= $min_ratio THEN launch_call_ratio END AS launch_call_ratio,
    waiting_ns AS others_wait_ns
FROM _late_run, limits
WHERE cause IS DISTINCT FROM 'gpu'
