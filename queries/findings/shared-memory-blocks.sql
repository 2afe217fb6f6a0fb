/*
code = "NSI424"
title = "Dynamic shared memory leaves most of each SM empty"
family = "occupancy"
explains = ["kernel-time", "low-occupancy", "other-wait"]
meaning = """
Each block asks for so much dynamic shared memory that an SM holds one or a few blocks, with few warps: while these wait
for memory, the SM has nothing to do. Its registers and warps would allow many more blocks."""
evidence = [
    """{kernel}: {dynamic_shared_bytes} of dynamic shared memory per block of {threads_per_block} threads:
    {blocks_per_sm:block}
    per SM, {warps} of {warps_per_sm} warps""",
    "with less shared memory, an SM holds up to {blocks_without_shared:block}",
    "{calls:call} {per} of {avg_ns}, {kernel_wall_pct} of the wall time",
    "the grid fills the GPU {waves_ratio} times",
]
skip_if = """
The kernel uses all of this memory, or keeps the SM busy with few warps, as a matrix product or a kernel with a
pipeline of its own does."""
effort = "line"
estimate = """
High: the time falls with the number of resident warps, up to half of those that an SM holds. Low: a third of that,
because the trace does not show how many warps hide the latency of memory."""
links = ["CUDA C++ Best Practices Guide, Effects of Shared Memory"]
report = "occupancy"
when = """
SELECT 1 FROM launch_shapes
WHERE dynamic_shared_bytes > $min_shared_bytes AND blocks_by_shared = blocks_per_sm
    AND least(blocks_by_warps, block_slots, blocks_by_registers) >= 4 * blocks_per_sm
LIMIT 1"""

[fix]
any = """
Ask for only the dynamic shared memory that the kernel uses; if it uses all of it, use smaller tiles, or more threads
per block on the same tile."""
cuda = """
Pass the bytes that the kernel uses as the third launch parameter (<<<grid, block, bytes>>>), and no larger
cudaFuncAttributeMaxDynamicSharedMemorySize; if it uses all of them, use smaller tiles, or more threads per block on
the same tile."""
python = """
In Triton, lower num_stages or the block sizes of the kernel, or raise num_warps; in CUDA C++, pass only the bytes that
the kernel uses as the third launch parameter."""
cupy = "Pass the bytes that the RawKernel uses as shared_mem; if it uses all of them, use smaller tiles."
numba = "Pass the bytes that the kernel uses as the fourth launch parameter; if it uses all of them, use smaller tiles."

[params]
max_warps_pct = [25.0, """Share of an SM's warps up to which it counts as nearly empty (25: eight or more of 64 often
    hide arithmetic, not memory)"""]
min_ratio = [4,
    "How many times the blocks must fit without shared memory (4: a pipeline that needs it seldom allows as many)"]
min_shared_bytes = [49152,
    "Dynamic shared memory per block above which it is reported (49152: a kernel has to ask for more than 48 KiB)"]
min_avg_ns = [10000, "Shorter kernels are bound by their launch and tail"]
enough_pct = [50.0, "Share of an SM's warps that suffices to hide the latency of memory"]
*/
WITH kernels AS (
    SELECT
        *, blocks_per_sm * warps_per_block AS warps,
        least(1.0 * blocks_without_shared / blocks_per_sm, $enough_pct / 100 * warps_per_sm / warps) AS speedup
    FROM step_operations
    WHERE kind = 'kernel' AND blocks_per_sm > 0 AND blocks_without_shared >= $min_ratio * blocks_per_sm
        AND dynamic_shared_bytes > $min_shared_bytes
        AND 100.0 * warps <= $max_warps_pct * warps_per_sm
        -- Enough blocks to use the room.
        AND blocks_count >= $min_ratio * blocks_per_sm * sm_count AND avg_ns >= $min_avg_ns
        -- Those who run kernels of libraries cannot change their launches.
        AND provenance IN (
            'hand-written', 'CuPy', 'Numba', 'Triton', 'Kokkos', 'RAJA', 'SYCL', 'Julia', 'Halide', 'Mojo'
        )
        AND family NOT IN ('gemm', 'attention', 'comm')
)
SELECT
    least((1 - 1 / k.speedup) * k.total_ns, limits.high_limit_ns) AS recoverable_ns,
    least((1 - 1 / k.speedup) * k.total_ns / 3, limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct, NULL AS place,
    CASE WHEN (1 - 1 / k.speedup) * k.total_ns > limits.high_limit_ns THEN 'the host' END AS bounded_by,
    kernel_base_name(k.name) AS kernel, k.dynamic_shared_bytes, k.threads_per_block, k.blocks_per_sm, k.warps,
    k.warps_per_sm, k.blocks_without_shared, k.calls, k.avg_ns, 100 * k.total_ns / t.wall_ns AS kernel_wall_pct,
    k.blocks_count / (k.blocks_per_sm * k.sm_count) AS waves_ratio
FROM kernels AS k, _step_totals AS t, _step_limits AS limits
WHERE k.speedup > 1.2
ORDER BY recoverable_ns DESC
LIMIT 3
