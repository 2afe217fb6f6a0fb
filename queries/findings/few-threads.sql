/*
code = "NSI431"
title = "A kernel has too few threads for the GPU"
family = "few-threads"
explains = ["kernel-time", "low-occupancy"]
meaning = """
An SM hides the latency of memory by switching between warps. With a few warps on each, it waits most of the time,
although every SM has a block. A thread for each row, particle or path is often too few, where each has a long loop."""
evidence = [
    """{kernel} has {blocks_count:block} of {threads_per_block} threads on {sm_count} SMs: {warps_per_sm} of
    {most_warps} warps on each""",
    "{calls:call} {per} of {avg_ns} on average, {kernel_wall_pct} of the wall time",
]
skip_if = "Each thread computes a chain of steps that cannot be split, or other kernels run at the same time."
effort = "function"
numerics = "rounding"
estimate = """
High: the time of the kernel without the share of the warps that it has of a quarter of all, which often suffice. Low: a
quarter of it."""
links = ["CUDA C++ Best Practices Guide, Occupancy"]
report = "occupancy"
when = """
SELECT 1 FROM launch_shapes
WHERE max_ns >= $min_avg_ns AND blocks_count >= sm_count AND blocks_count * warps_per_block <= $most_warps * sm_count
    AND static_shared_bytes + dynamic_shared_bytes = 0 AND registers_per_thread <= $most_registers
LIMIT 1"""

[fix]
any = """
Split the work of a thread: give each row or element a warp, whose threads read neighboring elements and sum at the end,
or a part of the loop to each of several blocks; or process several inputs in one launch."""

[params]
most_warps = [8, "Warps for each SM up to which they are few (8 of 64: an SM has four schedulers, with two warps each)"]
min_avg_ns = [20000, "Shorter kernels are latency-bound, whatever their threads (four launches)"]
min_step_pct = [5.0, "Share of the step from which a kernel is named (5: half of a hot kernel)"]
most_registers = [64, "Registers per thread up to which it is a simple kernel (64: twice the warps would fit)"]
*/
SELECT
    least(k.total_ns * (1 - k.warps / (0.25 * k.most_warps)), limits.high_limit_ns) AS recoverable_ns,
    least(0.25 * k.total_ns * (1 - k.warps / (0.25 * k.most_warps)), limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct, kernel_base_name(k.name) AS place,
    CASE WHEN recoverable_ns >= limits.high_limit_ns THEN 'the host' END AS bounded_by,
    kernel_base_name(k.name) AS kernel, k.blocks_count, k.threads_per_block, k.sm_count,
    round(k.warps)::BIGINT AS warps_per_sm, k.most_warps, k.calls, k.avg_ns, k.step_pct AS kernel_wall_pct
FROM _step_totals AS t, _step_limits AS limits, (
    SELECT *, warps_per_sm AS most_warps, 1.0 * blocks_count * warps_per_block / sm_count AS warps FROM step_operations
) AS k
WHERE k.kind = 'kernel' AND k.provenance IN ('hand-written', 'Numba', 'Kokkos', 'RAJA', 'SYCL', 'Julia')
    AND k.family NOT IN ('gemm', 'attention', 'comm') AND k.avg_ns >= $min_avg_ns AND k.step_pct >= $min_step_pct
    AND k.blocks_count >= k.sm_count AND k.warps <= $most_warps AND k.streams = 1
    -- Threads that share data in a block already divide the work.
    AND k.static_shared_bytes + k.dynamic_shared_bytes = 0
    AND k.registers_per_thread <= $most_registers
ORDER BY recoverable_ns DESC, kernel
LIMIT 1
