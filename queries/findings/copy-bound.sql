/*
code = "NSI302"
title = "The GPU only copies, or waits for a copy"
family = "copy"
symptom = "copy"
meaning = "Only copies to or from the GPU are running, or the GPU is idle during a blocking copy to it."
evidence = [
    "{copy_ns} {per}: {copy_parts}",
    "most time: {copy_kind} from {source} to {target} memory, {mean_bytes} each on average at {rate_bytes_per_s}",
    "copies run during {copy_share_pct} of a step, from or to pinned memory",
]
skip_if = "Nothing else can run, or the data is in a mapped file."
effort = "function"
estimate = """
High: the time in which only copies run, and the idle time during blocking copies. Low, for pageable memory: what
is left of it if pinned copies do not overlap, at the rate of those in the trace or, without any, at 20 GB/s (12
GB/s before compute capability 8.0). Unknown for small copies, for copies that do not repeat, and where pinned
copies run all the time."""
links = ["CUDA C++ Best Practices Guide, Asynchronous and Overlapping Transfers with Computation"]
example = "sample_traces/churn.sqlite"
report = "classify"
when = "SELECT 1 FROM classify_report WHERE part = 'copy' AND wall_pct >= $shown_pct"

[fix.to_gpu]
any = "Keep the data on the GPU; otherwise copy from pinned memory on a stream of its own while kernels run."
pytorch = """
Keep the data on the GPU; otherwise load it with pin_memory=True, copy with non_blocking=True, and prefetch the next
batch on another stream."""
jax = """
Keep the data on the device; otherwise put the next batch there ahead of its use (jax.device_put), and donate
buffers."""
cupy = """
Keep the data on the GPU; otherwise copy from pinned memory (cupyx.empty_pinned) on another stream while kernels
run."""
numba = "Pass device arrays to the kernels (cuda.to_device): host arrays are copied to the GPU and back at each launch."
cuda = """
Keep the data on the GPU; otherwise copy from pinned memory with cudaMemcpyAsync on another stream while kernels
run."""
openacc = "Put data regions around all kernels that use an array, and update device only what changed, with async."
openmp = "Put target data regions around all kernels that use an array, and target update to only what changed."
kokkos = """
Keep the data in views on the GPU; otherwise copy from Kokkos::SharedHostPinnedSpace with deep_copy on an execution
space instance of its own."""
sycl = "Keep the data on the GPU; otherwise copy from malloc_host memory on a queue of its own while kernels run."
julia = "Keep data in CuArrays between steps; otherwise pin host arrays (CUDA.pin) and copy on another task's stream."

[fix.small]
any = """
The copies are small, so each costs its latency, whatever the memory: gather the values in one copy, copy less often, or
keep them on the GPU."""

[fix.pinned]
any = "Keep the data on the GPU; otherwise copy it earlier, on a stream of its own while kernels run."
pytorch = """
Keep the data on the GPU; otherwise prefetch the next batch on another stream while kernels run (non_blocking=True)."""

[fix.once]
any = """
Copy in parts, so that kernels work on the first part while the next one is copied; pinning memory for one copy takes
about as long as the copy."""

[fix.once_to_host]
any = """
Copy back only what the host needs, in parts while kernels still compute the rest; pinning memory for one copy takes
about as long as the copy."""

[fix.less]
any = "Copy less: only what is needed, in a smaller type; or keep the data on the GPU."

[fix.to_host]
any = """
Copy back only what the host needs, and less often; otherwise copy to pinned memory on a stream of its own while kernels
run."""
pytorch = """
Copy back only what the host needs, and less often; otherwise copy with non_blocking=True to a pinned tensor
(pin_memory=True) on another stream, and wait for its event before reading."""
jax = "Copy back only what the host needs, and less often; otherwise start the copy early with copy_to_host_async()."
cupy = """
Copy back only what the host needs, and less often; otherwise copy to pinned memory on another stream:
array.get(stream=stream, out=buffer) with a buffer of cupyx.empty_pinned."""
numba = """
Pass device arrays to the kernels, and call copy_to_host only for what the host needs: host arrays are copied to the GPU
and back at each launch."""
cuda = """
Copy back only what the host needs, and less often; otherwise copy to pinned memory with cudaMemcpyAsync on another
stream while kernels run."""
openacc = "Put data regions around all kernels that use an array, and update self only what the host needs, with async."
openmp = """
Put target data regions around all kernels that use an array, and target update from only what the host needs."""
kokkos = """
Copy back only what the host needs, and less often; otherwise deep_copy to Kokkos::SharedHostPinnedSpace on an execution
space instance of its own."""
sycl = "Copy back only what the host needs, and less often; otherwise copy to malloc_host memory on a queue of its own."
julia = "Copy back only what the host needs (reduce on the GPU first); otherwise copy to arrays pinned with CUDA.pin."

[fix.pinned_to_host]
any = """
Copy back only what the host needs, and less often; otherwise copy on a stream of its own while kernels run, and wait
for its event before the host reads the data."""
jax = "Copy back only what the host needs, and less often; otherwise start the copy early with copy_to_host_async()."

[params]
small_bytes = [65536,
    "Smaller copies take their latency, not the time of their bytes (64 KiB: some microseconds at 20 GB/s)"]
once_copies = [4, "Without steps, most copies that count as not repeated (4: one for each of a few arrays)"]
max_share = [0.8, "Copies that run during this share of a step (0.8) are bound by the bus, whatever they overlap with"]
*/
WITH longest_copies AS (
    SELECT *, 'pageable' IN (source_memory, target_memory) AS is_pageable
    FROM _steady_copies
    WHERE copy_kind LIKE '%H%' AND copy_kind NOT LIKE 'UM %'
    ORDER BY total_ns DESC, copy_kind, source_memory, target_memory, name LIMIT 1
),
-- Copies in the two directions can overlap.
pinned_copies AS (
    SELECT max(direction_ns)::DOUBLE AS copy_ns, bool_and(is_pinned) AS are_pinned
    FROM (
        SELECT sum(total_ns) AS direction_ns, bool_and('pinned' IN (source_memory, target_memory)) AS is_pinned
        FROM _steady_copies WHERE copy_kind IN ('H2D', 'D2H') GROUP BY copy_kind
    )
),
idle_times AS (
    SELECT coalesce(sum(recoverable_ns), 0) AS idle_ns FROM host_report WHERE code = 'pageable_copy'
)
SELECT
    p.are_pinned AND p.copy_ns >= $max_share * t.wall_ns * t.units AS is_saturated,
    -- The wait for a small copy has a finding of its own.
    c.recoverable_ns + CASE WHEN l.is_pageable AND l.copy_kind = 'D2H' AND l.avg_bytes >= $small_bytes
        THEN i.idle_ns ELSE 0 END AS high_ns,
    CASE WHEN is_saturated THEN NULL ELSE high_ns END AS recoverable_ns,
    l.bandwidth_bytes_per_s / r.bytes_per_s AS rate_share,
    NOT t.has_steps AND l.is_pageable AND l.calls <= $once_copies AS is_once,
    CASE WHEN l.is_pageable AND l.avg_bytes >= $small_bytes AND rate_share < 1 AND NOT is_once
        THEN c.recoverable_ns * (1 - rate_share) END AS saving_low_ns,
    100 * high_ns / t.wall_ns AS wall_pct,
    l.name AS place,
    CASE
        WHEN is_saturated THEN 'less'
        WHEN l.avg_bytes < $small_bytes THEN 'small'
        WHEN is_once THEN CASE WHEN l.copy_kind LIKE '%2H' THEN 'once_to_host' ELSE 'once' END
        WHEN l.copy_kind LIKE '%2H' THEN if(l.is_pageable, 'to_host', 'pinned_to_host')
        WHEN NOT l.is_pageable THEN 'pinned'
        ELSE 'to_gpu'
    END AS cure_case,
    c.time_ns AS copy_ns,
    c.evidence AS copy_parts,
    l.copy_kind,
    l.source_memory AS source,
    l.target_memory AS target,
    l.avg_bytes AS mean_bytes,
    l.bandwidth_bytes_per_s AS rate_bytes_per_s,
    CASE WHEN is_saturated THEN 100 * p.copy_ns / (t.wall_ns * t.units) END AS copy_share_pct
FROM classify_report AS c
LEFT JOIN longest_copies AS l ON true
CROSS JOIN pinned_copies AS p
CROSS JOIN idle_times AS i
CROSS JOIN _pinned_rate AS r
CROSS JOIN _step_totals AS t
-- Unified memory has its own finding.
WHERE c.part = 'copy' AND NOT EXISTS (
    SELECT 1
    FROM _steady_copies
    WHERE copy_kind LIKE '%H%'
    HAVING 2 * coalesce(sum(total_ns) FILTER (copy_kind LIKE 'UM %'), 0) > sum(total_ns)
)
