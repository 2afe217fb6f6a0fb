/*
code = "NSI202"
title = "Synchronizations without a read-back"
family = "sync"
meaning = """
A synchronizing call blocks the host although no data is read back, and the GPU runs out of work."""
evidence = [
    "the CPU waits {host_wait_ns} in {waits:synchronization} {per}",
    "the GPU is idle for {idle_ns} during or right after them",
]
caveat = """
It is required for timing, or other code needs the complete result."""
effort = "line"
estimate = """
The idle time of the GPU while the host waits, and until the next launch."""
links = ["CUDA C++ Programming Guide, Explicit Synchronization"]
example = "sample_traces/churn.sqlite"
report = "host"
when = "SELECT 1 FROM host_report WHERE code = 'other_wait' AND wall_pct >= $shown_pct"

[cure.no_steps]
any = """
Remove the waits that nothing needs: the operations of a stream run in order without them, and a copy to pageable
memory waits by itself."""
openacc = "Add async to the compute and update directives, and one wait where the host needs the result."
openmp = """
With OpenMP, add nowait and depend to the target constructs, and one taskwait where the host needs the result."""

[cure.steps]
any = "Remove the wait, or wait for one event: the operations of a stream run in order without it."
pytorch = """
Remove torch.cuda.synchronize() from the loop, or wait for one event: the operations of a stream run in order without
it."""
jax = "Call block_until_ready() only at the end of a measurement, not in each step."
cupy = "Remove synchronize() calls from the loop: the operations of a stream run in order without them."
numba = "Remove cuda.synchronize() from the loop: the operations of a stream run in order without it."
cuda = """
Remove cudaDeviceSynchronize or cudaStreamSynchronize from the loop, or wait for one event: the operations of a stream
run in order without them."""
openacc = "Add async to the compute and update directives, and one wait where the host needs the result."
openmp = """
With OpenMP, add nowait and depend to the target constructs, and one taskwait where the host needs the result."""
kokkos = "Remove Kokkos::fence() where the next kernel runs in the same execution space instance."
sycl = "Use an in-order queue or events between kernels, and wait() only where the host needs the result."
julia = "Remove CUDA.synchronize() and CUDA.@sync from the loop."
*/
WITH costliest_sync AS (
    SELECT nvtx_path, name FROM syncs_report
    WHERE copy_kind IS DISTINCT FROM 'D2H' AND NOT is_copy AND (steady_count > 0 OR steady_count IS NULL)
    ORDER BY coalesce(steady_idle_ns, gpu_idle_ns) DESC, host_wait_ns DESC, nvtx_path, name LIMIT 1
)
SELECT
    h.recoverable_ns,
    h.wall_pct,
    (SELECT concat_ws(' in ', name, nvtx_path) FROM costliest_sync) AS place,
    CASE WHEN EXISTS (FROM steps WHERE phase = 'steady') THEN 'steps' ELSE 'no_steps' END AS cure_case,
    h.count AS waits,
    h.host_ns AS host_wait_ns,
    h.recoverable_ns AS idle_ns
FROM host_report AS h
WHERE h.code = 'other_wait'
