/*
code = "NSI421"
title = "A kernel runs in one or a few blocks"
family = "one-block"
explains = ["kernel-time", "small-grid", "low-occupancy", "repeated-step"]
meaning = """
A block runs on one SM: with fewer blocks than a tenth of the SMs, most of the GPU does nothing, and the kernel takes
as long as one SM needs."""
evidence = [
    "{kernel} runs {blocks:block} on a GPU of {sm_count} SMs",
    "{calls:call} {per} of {mean_ns} on average, {kernel_time_pct} of kernel time",
]
skip_if = "Other kernels run on the other SMs at the same time, or the algorithm is sequential."
effort = "function"
estimate = """
High: the time of the kernel without migrations of unified memory, and without the share of the SMs that it uses. Low:
half of it."""
links = [
    "CUDA C++ Best Practices Guide, Execution Configuration Optimizations",
    "CUB documentation, device-wide primitives",
]
report = "launch-configs"
when = """
SELECT 1 FROM launch_shapes
HAVING min(blocks_count) FILTER (max_ns >= $min_avg_ns) <= $max_sm_share * max(sm_count)"""

[fix]
any = """
Split the work over many blocks: for a reduction, one result per block and then a second, small step; or use a
library."""
pytorch = "Use an operation of PyTorch that splits the work, or process several inputs in one call."
cupy = "Use cupy.sum, cupy.cub or a ReductionKernel, which split the work over many blocks."
cuda = """
Split the work over many blocks. For reductions, scans and sorts use CUB or Thrust (cub::DeviceReduce), or reduce per
block and add with atomicAdd."""
numba = "Use cuda.reduce, or reduce per block and add with cuda.atomic.add."
openacc = "Use gang parallelism: parallel loop gang vector reduction(...), without num_gangs(1) or seq."
openmp = "Use target teams distribute parallel for reduction(...), without num_teams(1)."
kokkos = "Use parallel_reduce over a RangePolicy instead of a single team."
julia = "Use reduce or mapreduce of CUDA.jl, which split the work over many blocks."

[params]
max_sm_share = [0.1, "Largest number of blocks, as a share of the SMs (0.1: nine tenths of the GPU do nothing)"]
min_avg_ns = [20000, "Shorter kernels are latency-bound, whatever their grid (four launches)"]
*/
WITH shapes AS (
    SELECT
        name_id, grid_x || 'x' || grid_y || 'x' || grid_z AS grid, block_x || 'x' || block_y || 'x' || block_z AS block,
        max_by(blocks_count, total_ns) AS blocks, max_by(sm_count, total_ns) AS sm_count
    FROM launch_shapes
    GROUP BY ALL
),
-- While a kernel waits for pages of unified memory, more blocks do not help.
migrations AS (
    SELECT name, sum(in_kernel_ns) AS in_kernel_ns FROM _unified_memory_events GROUP BY name
),
few_blocks AS (
    SELECT s.*, h.blocks, h.sm_count, greatest(s.total_ns - coalesce(m.in_kernel_ns, 0), 0) AS own_ns
    FROM _steady_shapes AS s
    JOIN kernel_names AS k ON k.name = s.name
    JOIN shapes AS h ON h.name_id = k.name_id AND h.grid = s.grid AND h.block = s.block
    LEFT JOIN migrations AS m ON m.name = s.name
    WHERE h.blocks <= $max_sm_share * h.sm_count AND s.family IS DISTINCT FROM 'comm'
        -- Durations of kernels that overlap may contain the wait for the kernel before (programmatic dependent launch).
        AND s.avg_ns * (SELECT least(1, busy_ns / kernel_ns) FROM _step_totals) >= $min_avg_ns
        -- Those who call a library choose what it does, not its grids; operations that could be others have findings.
        AND coalesce(k.provenance NOT IN ('cuBLAS', 'cuSOLVER', 'cuSPARSE', 'cuFFT', 'CUB/Thrust', 'XLA'), true)
        -- Kernels that only let time pass. That of cuDNN starts early and waits for the kernel before it.
        AND NOT regexp_matches(s.name, '(?i)spin_kernel|nanosleep|delay|init_device_workspace')
    ORDER BY own_ns DESC, s.name
    LIMIT 1
)
SELECT
    -- Kernels that run at the same time share what is saved.
    f.own_ns / t.units * (1 - f.blocks / f.sm_count) * least(1, t.busy_ns / t.kernel_ns) AS saved_ns,
    least(saved_ns, limits.high_limit_ns) AS recoverable_ns,
    least(0.5 * saved_ns, limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    kernel_base_name(f.name) AS place,
    kernel_base_name(f.name) AS kernel, f.blocks, f.sm_count, f.calls / t.units AS calls, f.avg_ns AS mean_ns,
    f.kernel_time_pct
FROM few_blocks AS f, _step_totals AS t, _step_limits AS limits
WHERE saving_low_ns > 0
