/*
code = "NSI303"
title = "Copies use pageable memory"
family = "copy"
symptom = "copy"
overlaps = true
meaning = """
The driver copies through a staging buffer of its own. This can be slower, and can block the host even if the name of
the call ends in Async."""
evidence = [
    "{copies:copy|copies} {per} from or to pageable memory",
    "the GPU is idle for {idle_ns} during these calls ({idle_pct} of the wall time)",
]
skip_if = "The memory is used for one copy only: pinning it takes longer than the copy."
effort = "line"
estimate = "The idle time of the GPU during these calls."
links = ["CUDA C++ Best Practices Guide, Pinned Memory", "CUDA Runtime API, API synchronization behavior: Memcpy"]
example = "sample_traces/churn.sqlite"
report = "host"
when = "SELECT 1 FROM host_report WHERE code = 'pageable_copy' AND wall_pct >= $shown_pct"

[fix]
any = "Allocate the host buffer once as pinned memory, keep it, and copy asynchronously."
pytorch = """
Use DataLoader(pin_memory=True) or a pinned buffer that is kept (torch.empty(..., pin_memory=True)), and copy with
non_blocking=True."""
jax = "Put batches on the device ahead of their use (jax.device_put in a prefetch thread)."
cupy = """
Keep a pinned buffer (cupyx.empty_pinned), and copy with array.set(buffer, stream=stream) and array.get(stream=stream,
out=buffer)."""
numba = "Keep a pinned buffer (cuda.pinned_array) and copy it on a stream."
cuda = "Allocate the host buffer once with cudaMallocHost, and copy with cudaMemcpyAsync."
openacc = "Compile with -gpu=pinned (nvc, nvfortran)."
openmp = "Compile with -gpu=pinned (nvc, nvfortran), or use an allocator with the trait pinned."
kokkos = "Keep the host view in Kokkos::SharedHostPinnedSpace, and pass an execution space instance to deep_copy."
sycl = "Allocate the host buffer once with malloc_host, and copy with queue::memcpy."
julia = "Pin the array once with CUDA.pin(array)."

[params]
small_bytes = [65536,
    "Smaller copies cost their latency in any memory (64 KiB: the driver stages such copies to the GPU at once)"]
*/
WITH longest_copies AS (
    SELECT name, avg_bytes FROM _steady_copies WHERE 'pageable' IN (source_memory, target_memory)
    ORDER BY total_ns DESC, copy_kind, source_memory, target_memory, name LIMIT 1
)
SELECT
    h.recoverable_ns,
    h.wall_pct,
    (SELECT name FROM longest_copies) AS place,
    h.count AS copies,
    h.recoverable_ns AS idle_ns,
    h.wall_pct AS idle_pct
FROM host_report AS h
WHERE h.code = 'pageable_copy' AND (SELECT avg_bytes FROM longest_copies) >= $small_bytes
