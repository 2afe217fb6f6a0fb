/*
code = "NSI304"
title = "Unified memory migrates while the program runs"
family = "copy"
meaning = """
Pages of managed memory migrate when one side touches what is on the other. A kernel or the host waits for the pages
that it touches."""
evidence = [
    "{directions} {per}",
    "moving the pages takes {moving_ns} {per}",
    "{in_kernel_ns} of it while kernels run",
    "{page_faults} {per}",
    "those of the GPU last {fault_ns} {per}",
    "{prefetched_bytes} more are prefetched",
    "{allocations:allocation} of managed memory {per}",
]
skip_if = "It is the first touch, which happens once."
effort = "line"
estimate = """
The time of the migrations, or that of the GPU page faults if it is longer. Where the memory is allocated in each step,
that is the low end; high: with the time in which the GPU is idle, as page faults of the host are in no CUDA call."""
links = ["CUDA C++ Programming Guide, Unified Memory Programming"]
report = "unified-memory"
when = "SELECT 1 FROM memcpys WHERE migration_cause IS NOT NULL UNION ALL SELECT 1 FROM page_faults LIMIT 1"

[items]
directions = ["{migrations:migration} {direction} ({moved_bytes})"]
page_faults = ["{faults:page fault} of the {side}"]

[fix.allocated]
any = """
Managed memory is allocated in each step, so each of its pages is touched for the first time again: allocate device
memory once before the loop, and copy to and from it (from pinned memory)."""

[fix.host]
any = """
Kernels wait for few of these pages: let a kernel do what the host does with them, or copy them explicitly between
device memory and the host."""
openacc = "Do in a parallel loop what the host does with these pages."
openmp = "Do in a target region what the host does with these pages."

[fix.kernels]
any = "Prefetch the data to the GPU before the kernels, and back before the host reads it; or use device memory."
cuda = """
Call cudaMemPrefetchAsync to the GPU before the kernels, and back before the host reads; cudaMemAdvise for data that
both read; or use device memory and explicit copies."""
cupy = "Use the default memory pool instead of managed memory (cupy.cuda.malloc_managed)."
numba = "Use cuda.to_device and device arrays instead of cuda.managed_array."
openacc = "Compile without managed memory (-gpu=nomanaged), with data regions around the loop."
openmp = "Compile without managed memory (-gpu=nomanaged), with target data regions around the loop."
kokkos = "Use CudaSpace with explicit deep_copy instead of CudaUVMSpace."
sycl = "Use malloc_device with explicit copies, or queue::prefetch before the kernels."
julia = "Use device memory (the default of CuArray) instead of unified memory."

[params]
launch_ns = [5000, "Less than this in total is not reported (5 µs: a launch)"]
min_kernel_share = [0.1,
    "Share of the migrations during kernels, or GPU page faults, from which kernels wait for pages (a tenth)"]
*/
WITH step_events AS MATERIALIZED (
    SELECT u.* FROM _unified_memory_events AS u ASOF JOIN _steady_windows AS o ON o.start_ns <= u.start_ns
    WHERE u.start_ns < o.end_ns
),
migrations AS (
    FROM step_events WHERE cause IS NOT NULL AND cause <> 'prefetch'
),
-- The kernel and range whose migrations took the most time.
costliest_place AS (
    SELECT name, nvtx_path FROM migrations
    GROUP BY name, nvtx_path ORDER BY sum(duration_ns) DESC, count(*) DESC, name, nvtx_path LIMIT 1
),
directions AS (
    SELECT
        event,
        CASE event WHEN 'UM H2D' THEN 'to the GPU' WHEN 'UM D2H' THEN 'to the host' ELSE 'between GPUs' END
            AS direction,
        count(*) AS migrations, sum(size_bytes)::DOUBLE AS moved_bytes
    FROM migrations GROUP BY event
),
faults AS (
    SELECT split_part(event, ' ', 1) AS side, sum(faults) AS faults, sum(duration_ns) AS fault_ns
    FROM step_events WHERE cause IS NULL GROUP BY side
),
-- GPU page faults last until the pages have arrived. The host may have other work between two pages: that time is not
-- promised as a saving.
cost AS (
    SELECT *, greatest(moving_ns, fault_ns) AS cost_ns
    FROM (
        SELECT sum(duration_ns)::DOUBLE AS moving_ns, nullif(sum(in_kernel_ns), 0)::DOUBLE AS in_kernel_ns
        FROM migrations
    )
    CROSS JOIN (SELECT nullif(sum(fault_ns), 0)::DOUBLE AS fault_ns FROM faults WHERE side = 'GPU')
)
SELECT
    least(c.cost_ns / t.units + if(a.allocations IS NULL, 0, t.idle_ns), t.wall_ns) AS recoverable_ns,
    if(a.allocations IS NULL, NULL, c.cost_ns / t.units) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    if(a.allocations IS NULL, [], ['late-host', 'alternating', 'host-input', 'allocation']) AS explains,
    a.allocations,
    (SELECT concat_ws(' in ', operation_text(name), nvtx_path) FROM costliest_place) AS place,
    CASE
        WHEN a.allocations IS NOT NULL THEN 'allocated'
        WHEN c.fault_ns > 0 OR c.in_kernel_ns >= $min_kernel_share * c.moving_ns THEN 'kernels' ELSE 'host'
    END AS cure_case,
    (
        SELECT list({
            'migrations': migrations / t.units, 'direction': direction, 'moved_bytes': moved_bytes / t.units
        } ORDER BY event DESC) FROM directions
    ) AS directions,
    c.moving_ns / t.units AS moving_ns,
    c.in_kernel_ns / t.units AS in_kernel_ns,
    c.fault_ns / t.units AS fault_ns,
    (SELECT list({'faults': faults / t.units, 'side': side} ORDER BY side DESC) FROM faults) AS page_faults,
    (SELECT nullif(sum(size_bytes), 0) FROM step_events WHERE cause = 'prefetch') / t.units AS prefetched_bytes
FROM cost AS c, _step_totals AS t, (
    SELECT round(sum(calls))::BIGINT AS allocations FROM step_operations
    WHERE kind = 'call' AND name IN ('cudaMallocManaged', 'cuMemAllocManaged') AND has_steps AND calls >= 0.9
) AS a
WHERE c.cost_ns >= $launch_ns
