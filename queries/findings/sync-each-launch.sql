/*
code = "NSI212"
title = "The host waits after nearly every launch"
family = "sync-each-launch"
explains = [
    "other-wait", "launch-bound", "many-launches", "graph-candidate", "cpu-work", "fusion", "stall-place", "d2h-sync",
]
meaning = """
With a wait after each launch nothing runs ahead: for each kernel the GPU is idle while the host returns from the wait
and launches the next one."""
evidence = [
    "{waits:wait} and {launches:launch|launches} {per}",
    "the GPU is idle for {idle_ns} of {wall_ns}",
    "most of the waits are in {call}",
]
caveat = """
The waits are there to measure each kernel, or to find the one that fails."""
effort = "line"
estimate = """
High: nine tenths of the idle time of the GPU. Low: 40 % of it, as launches then set the pace."""
links = ["CUDA C++ Programming Guide, Asynchronous Concurrent Execution"]
report = "syncs"

[cure]
any = "Remove the waits: operations of a stream run in order. Use events for dependencies between streams."
pytorch = """
Remove torch.cuda.synchronize() from the loop, and unset CUDA_LAUNCH_BLOCKING."""
cupy = "Remove synchronize() from the loop, and unset CUDA_LAUNCH_BLOCKING."
jax = "Remove block_until_ready() from the loop."
cuda = """
Remove cudaDeviceSynchronize and cudaStreamSynchronize from the loop, and unset CUDA_LAUNCH_BLOCKING; use events for
dependencies between streams."""
openacc = """
Add async to the compute constructs, and one wait at the end of the step; unset NVCOMPILER_ACC_SYNCHRONOUS."""
openmp = "Add nowait to the target constructs, and one taskwait at the end of the step."
kokkos = "Remove Kokkos::fence() between kernels of one execution space instance."
julia = "Remove CUDA.@sync and CUDA.synchronize() from the loop."

[params.least_ratio]
default = 0.8
help = "Waits per launch from which this is reported (0.8: after nearly each)"

[params.most_wait_ns]
default = 100000
help = "Longest idle time after a wait that counts as its cost (100 µs: more is other work of the host)"

[params.least_launches]
default = 4
help = "Fewest launches in a step (4: a wait for one or two kernels is a result that is needed)"
*/
WITH windows AS (
    SELECT process_id, host_start_ns, host_end_ns FROM steps WHERE phase = 'steady'
),
waits_of_steps AS (
    SELECT count(*)::DOUBLE AS waits, mode(w.name) AS call
    FROM (FROM waits WHERE NOT is_copy) AS w
    ASOF JOIN windows AS s ON s.process_id = w.process_id AND s.host_start_ns <= w.start_ns
    WHERE w.start_ns < s.host_end_ns
)
SELECT
    0.9 * least(t.idle_ns, $most_wait_ns * w.waits / t.units) AS recoverable_ns,
    0.4 * least(t.idle_ns, $most_wait_ns * w.waits / t.units) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    w.waits / t.units AS waits, t.launch_calls AS launches, t.idle_ns, t.wall_ns, w.call
FROM waits_of_steps AS w, _step_totals AS t
WHERE t.has_steps AND t.launch_calls >= $least_launches AND w.waits >= $least_ratio * t.launch_calls * t.units
