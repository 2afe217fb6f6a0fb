/*
code = "NSI301"
title = "The GPU waits while memory is allocated or freed"
family = "allocation"
meaning = """
The GPU is idle while the host allocates, frees or pins memory. cudaFree and cudaMalloc can also wait for the GPU."""
evidence = [
    [
        "{threads:thread} of the CPU together spend {host_ns} in {calls:call} {per}",
        "the CPU spends {host_ns} in {calls:call} {per}",
    ],
    "the GPU is idle for {idle_ns} during these calls",
    "{events:event} are made {per} too, as by a handle of cuBLAS or cuSOLVER",
    """synchronizations return {tail_ns} after the GPU has finished, as when the pool gives its memory back, and
    allocations take {alloc_ns} each""",
]
skip_if = "It is warm-up that the steady state does not repeat."
effort = "line"
estimate = """
High: the time that the host spends in these calls, at most the idle time of the GPU: without them the host launches
ahead, and the GPU is idle neither during them nor right after them; where the pool gives its memory back, also the time
from the end of the GPU's work to the end of the synchronization. Low: 35% of it, because the profiler makes calls
longer."""
links = [
    "CUDA C++ Programming Guide, Stream Ordered Memory Allocator",
    "PyTorch documentation, CUDA semantics: Memory management",
]
example = "sample_traces/churn.sqlite"
report = "host"
when = "SELECT 1 FROM host_report WHERE code = 'allocation'"

[fix.loop]
any = "Allocate once before the loop and reuse the memory, or allocate from a pool."
pytorch = """
Let the caching allocator keep its memory: remove torch.cuda.empty_cache() from the loop. If sizes vary, set
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."""
jax = """
Keep the default preallocation (XLA_PYTHON_CLIENT_PREALLOCATE), and donate buffers: jax.jit(..., donate_argnums)."""
cupy = "Keep the default memory pool: do not call free_all_blocks() or set_allocator(None) in the loop."
numba = "Create device arrays once before the loop (cuda.to_device, cuda.device_array), and pass these to the kernels."
cuda = "Allocate once before the loop and reuse the memory, or use cudaMallocAsync and cudaFreeAsync."
openacc = "Put a data region (enter data, exit data) around the loop, so that arrays stay allocated."
openmp = "Put target enter data and target exit data around the loop, so that arrays stay allocated."
kokkos = "Create the views once before the loop and reuse them."
sycl = "Call malloc_device once before the loop and reuse the memory."
julia = "Preallocate outputs and use in-place operations; CUDA.jl's pool keeps memory unless CUDA.reclaim() is called."

[fix.pool]
any = """
Let the pool keep its memory: raise its release threshold (by default, unused memory is given back at each
synchronization), or allocate before the loop and reuse."""
cuda = """
Let the pool keep its memory: raise cudaMemPoolAttrReleaseThreshold with cudaMemPoolSetAttribute (by default, unused
memory is given back at each synchronization), or allocate before the loop and reuse."""
pytorch = """
Let the allocator keep its memory: remove torch.cuda.empty_cache() from the loop, and use the native caching allocator
(PYTORCH_CUDA_ALLOC_CONF=backend:native)."""

[fix.trim]
any = """
Do not trim the pool in the loop: what cudaMemPoolTrimTo gives back is mapped again by the next allocations. Trim it
after the loop, or when other programs need the memory."""

[fix.handle]
any = """
Most of these calls come with a handle of a library, which has memory, events and waits of its own: make the handle once
before the loop, and keep it."""
cuda = """
Call cublasCreate or cusolverDnCreate once before the loop, and keep the handle: making and destroying it allocates
memory, makes events and waits for the GPU. Allocate workspaces once, too."""

[fix.temporary]
any = """
Thrust allocates temporary memory in each call: pass thrust::cuda::par_nosync(allocator) with an allocator that keeps
it, or call CUB with temporary memory that is allocated once. Allocate what is the program's own before the loop."""

[fix.kept]
any = "The memory is not freed in the loop: allocate one block for all of it before the loop, and use parts of it."
openacc = """
The memory is not freed in the loop, so it has its data region: make one contiguous array of the parts, which one
directive (enter data) allocates and copies."""
openmp = """
The memory is not freed in the loop, so it has its data region: make one contiguous array of the parts, which one
target enter data allocates and copies."""

[fix.no_loop]
any = "Allocate ahead of the work that needs the memory, in few calls, and reuse it."

[fix.setup]
any = """
Most of it is in calls of cudaFree of 100 ms and more, with which libraries such as cuBLAS and cuDNN set themselves up,
once per process: run one operation of each before the part that is measured."""

[fix.pinned]
any = """
Pin host memory once, ahead of the work that needs it, and reuse it, such as a ring of a few buffers: pinning takes time
for each page."""

[params]
min_tail_ns = [20000,
    "Mean time from the end of the GPU's work to the end of a synchronization that gives memory back (20 µs)"]
min_alloc_ns = [10000, "Mean duration of an allocation from a pool that has no memory (10 µs: memory is reused sooner)"]
setup_ns = [100000000, "Shortest cudaFree with an idle GPU that sets up a library (100 ms: freeing memory takes less)"]
max_freed = [0.1,
    "Frees per allocation in the steps up to which memory is kept (0.1: a loop that reuses memory frees all of it)"]
*/
WITH calls AS (
    SELECT name, memory, call_group, steady_count, row_number() OVER (ORDER BY total_ns DESC, name) AS turn
    FROM mallocs_report
    WHERE steady_count > 0 OR steady_count IS NULL
),
-- Without steps: the calls after the first operation. Those before it create the context, and delay no operation.
later_calls AS (
    SELECT
        count(*) AS calls, sum(duration_ns) AS host_ns,
        sum(duration_ns) FILTER (call_group = 'free' AND duration_ns >= $setup_ns) AS setup_ns
    FROM outer_api_calls
    WHERE call_group IN ('alloc', 'free') AND start_ns >= (SELECT min(start_ns) FROM _gpu_busy_parts)
        AND NOT EXISTS (FROM steps WHERE phase = 'steady')
),
-- Threads that allocate at the same time: together they may take longer than a step.
threads AS (
    SELECT count(DISTINCT thread_id) AS threads FROM step_calls WHERE call_group IN ('alloc', 'free')
),
pools AS (
    SELECT p.tail_ns / t.units AS tail_ns, p.alloc_ns
    FROM _pool_waits AS p, _step_totals AS t
    WHERE p.tail_ns >= p.waits * $min_tail_ns AND p.alloc_ns >= $min_alloc_ns
        AND EXISTS (FROM calls WHERE name LIKE '%Free%Async')
)
SELECT
    -- Without other waits, all of the time that the host saves shortens the idle time.
    CASE
        WHEN p.tail_ns IS NOT NULL THEN least(h.recoverable_ns + p.tail_ns, t.idle_ns)
        WHEN t.has_steps AND t.sync_calls = 0 THEN greatest(h.recoverable_ns, least(h.host_ns, t.idle_ns))
        ELSE h.recoverable_ns
    END AS saved_ns,
    saved_ns AS recoverable_ns,
    0.35 * saved_ns AS saving_low_ns,
    h.wall_pct * saved_ns / h.recoverable_ns AS wall_pct,
    (SELECT string_agg(name, ', ' ORDER BY turn) FROM calls WHERE turn <= 2) AS place,
    -- Without steps, it is unknown whether there is a loop.
    CASE
        WHEN 2 * l.setup_ns >= l.host_ns THEN 'setup'
        WHEN EXISTS (FROM calls WHERE turn = 1 AND memory = 'pinned host') THEN 'pinned'
        WHEN NOT t.has_steps THEN 'no_loop'
        WHEN (SELECT coalesce(sum(steady_count) FILTER (call_group = 'free'), 0) FROM calls)
            <= $max_freed * (SELECT sum(steady_count) FILTER (call_group = 'alloc') FROM calls) THEN 'kept'
        WHEN EXISTS (FROM calls WHERE name LIKE '%MemPoolTrimTo') THEN 'trim'
        WHEN EXISTS (FROM calls WHERE turn = 1 AND name LIKE '%Async') THEN 'pool'
        WHEN b.handle_events IS NOT NULL THEN 'handle'
        WHEN b.has_thrust THEN 'temporary'
        ELSE 'loop'
    END AS cure_case,
    CASE WHEN l.calls > 0 THEN l.calls ELSE h.count END AS calls,
    CASE WHEN l.calls > 0 THEN l.host_ns ELSE h.host_ns END AS host_ns,
    CASE WHEN n.threads > 1 AND h.host_ns > t.wall_ns THEN n.threads END AS threads,
    h.recoverable_ns AS idle_ns, p.tail_ns, p.alloc_ns, if(t.has_steps, b.handle_events, NULL) AS events,
    CASE
        WHEN p.tail_ns IS NOT NULL OR t.has_steps AND b.handle_events IS NOT NULL THEN ['other-wait', 'stall-place']
        ELSE []::VARCHAR[]
    END AS explains
FROM host_report AS h
CROSS JOIN _step_totals AS t
CROSS JOIN later_calls AS l
CROSS JOIN threads AS n
CROSS JOIN _allocating_libraries AS b
LEFT JOIN pools AS p ON true
WHERE h.code = 'allocation'
