/*
code = "NSI202"
title = "Synchronizations without a read-back"
family = "sync"
symptom = "wait"
meaning = "A synchronizing call blocks the host although no data is read back, and the GPU runs out of work."
evidence = [
    "the CPU waits {host_wait_ns} in {waits:synchronization} {per}",
    "the GPU is idle for {idle_ns} meanwhile or right after",
]
skip_if = "It is required for timing, or other code needs the complete result."
effort = "line"
estimate = "The idle time of the GPU while the host waits, and until the next launch."
links = ["CUDA C++ Programming Guide, Explicit Synchronization"]
example = "sample_traces/churn.sqlite"
report = "host"
when = "SELECT 1 FROM host_report WHERE code = 'other_wait' AND wall_pct >= $shown_pct"

[fix.no_steps]
any = """
Remove the waits that nothing needs: the operations of a stream run in order without them, and a copy to pageable
memory waits by itself."""
openacc = """
Add async to the compute and update directives, and one wait where the host needs the result; where the loops are do
concurrent, merge neighbors."""
openmp = """
Add nowait and depend to the target constructs, and one taskwait where the host needs the result; where the loops are do
concurrent, merge neighbors."""

[fix.steps]
any = "Remove the wait, or wait for one event: the operations of a stream run in order without it."
pytorch = """
Remove torch.cuda.synchronize() or stream.synchronize() from the loop, or wait for one event: the operations of a stream
run in order without it."""
jax = "Call block_until_ready() only at the end of a measurement, not in each step."
cupy = "Remove synchronize() calls from the loop: the operations of a stream run in order without them."
numba = "Remove cuda.synchronize() from the loop: the operations of a stream run in order without it."
cuda = "Remove {call} from the loop, or wait for one event: the operations of a stream run in order without it."
openacc = """
Add async to the compute and update directives, and one wait where the host needs the result; where the loops are do
concurrent, merge neighbors."""
openmp = """
Add nowait and depend to the target constructs, and one taskwait where the host needs the result; where the loops are do
concurrent, merge neighbors."""
kokkos = "Remove Kokkos::fence() where the next kernel runs in the same execution space instance."
sycl = "Use an in-order queue or events between kernels, and wait() only where the host needs the result."
julia = "Remove CUDA.synchronize() and CUDA.@sync from the loop."

[fix.events]
any = """
Wait for fewer events: where another stream needs the result, let that stream wait; the host waits once where it needs
it."""
pytorch = """
Wait for fewer events: where another stream needs the result, let that stream wait (stream.wait_event); the host waits
once where it needs it (event.synchronize)."""
cupy = """
Wait for fewer events: where another stream needs the result, let that stream wait (stream.wait_event); the host waits
once where it needs it (event.synchronize)."""
cuda = """
Wait for fewer events: where another stream needs the result, let that stream wait (cudaStreamWaitEvent); the host waits
once where it needs it (cudaEventSynchronize)."""
*/
WITH costliest_sync AS (
    SELECT nvtx_path, name FROM syncs_report
    WHERE copy_kind IS DISTINCT FROM 'D2H' AND NOT is_copy AND (steady_count > 0 OR steady_count IS NULL)
    ORDER BY coalesce(steady_idle_ns, gpu_idle_ns) DESC, host_wait_ns DESC, nvtx_path, name LIMIT 1
)
SELECT
    h.recoverable_ns,
    h.wall_pct,
    nullif(concat_ws(' in ', c.name, c.nvtx_path), '') AS place,
    CASE
        WHEN NOT EXISTS (FROM steps WHERE phase = 'steady') THEN 'no_steps'
        WHEN c.name LIKE '%EventSynchronize%' THEN 'events'
        ELSE 'steps'
    END AS cure_case,
    c.name AS call,
    h.count AS waits,
    h.host_ns AS host_wait_ns,
    h.recoverable_ns AS idle_ns
FROM host_report AS h
LEFT JOIN costliest_sync AS c ON true
WHERE h.code = 'other_wait'
