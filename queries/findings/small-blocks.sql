/*
code = "NSI422"
title = "Blocks have an odd or small number of threads, or too little work"
family = "small-blocks"
explains = ["kernel-time", "low-occupancy"]
meaning = """
A warp has 32 threads: a block whose size is no multiple of 32 leaves lanes of its last warp empty. The GPU also starts
only about one block per cycle, so many blocks of few threads or little work take as long as it takes to start them."""
evidence = [
    "{kernel} has blocks of {threads:thread}, which use {lane_pct} of the lanes of their warps",
    "{kernel} has {many_blocks:block} of {threads:thread}, each with too little work",
    "{?is_start_bound}the GPU starts {blocks_per_us} of its blocks per microsecond, near one per cycle",
    "{calls:call} {per} of {mean_ns} on average, {kernel_time_pct} of kernel time",
    "{more_kernels:more kernel} with such blocks",
]
skip_if = "Another limit, such as memory bandwidth, is reached already."
effort = "line"
estimate = """
High: the time of the kernel times the share of empty lanes; where it starts about one block per cycle, times the share
of the blocks that blocks of 256 threads save; with more threads, without what a byte read and one written for each
thread take. Low: half of that; with more threads, at most what is left without 4 bytes of each. An H100 was measured to
start 1.66 blocks per nanosecond."""
links = ["CUDA C++ Best Practices Guide, Thread and Block Heuristics"]
report = "launch-configs"
when = """
SELECT 1 FROM launch_shapes
WHERE max_ns >= $min_avg_ns
    AND (threads_per_block < $few_threads OR threads_per_block % 32 <> 0 OR blocks_count >= 0.5 * avg_ns)
LIMIT 1"""

[fix.work]
any = """
Give each block of {kernel} more work: several elements for each thread, so that a few thousand blocks are enough, and
not {many_blocks}."""
cuda = """
Give each thread of {kernel} several elements (4 to 16: a loop over the threads of the grid, vector loads such as
float4), so that a few thousand blocks are enough, and not {many_blocks}."""
python = """
Give each block of {kernel} more work, so that a few thousand blocks are enough, and not {many_blocks}: in Triton, a
larger BLOCK, or several rows or groups for each program; in CUDA C++, several elements for each thread."""
numba = """
Give each thread of {kernel} several elements, in a loop with steps of cuda.gridsize(1), so that a few thousand blocks
are enough, and not {many_blocks}."""

[fix.threads]
any = "Use blocks of 128 to 256 threads, a multiple of 32."
cuda = "Launch with 128 to 256 threads in a block, a multiple of 32."
cupy = "Launch the RawKernel with 128 to 256 threads in a block, a multiple of 32."
numba = "Launch with 128 to 256 threads in a block, a multiple of 32."
openacc = "Set vector_length(128), and let gangs and vectors share the loop: gang vector."
openmp = "Set thread_limit(128), and use teams distribute parallel for."
julia = "Launch with threads=256, a multiple of 32: @cuda threads=256 blocks=cld(n, 256)."

[params]
min_pct = [5.0, "Share of the kernel time from which a kernel is named (5: a clear part)"]
few_threads = [128, "Blocks of fewer threads are small (128: a warp for each scheduler of an SM)"]
min_avg_ns = [10000, "Shorter kernels are latency-bound, whatever their blocks (twice a launch)"]
full_threads = [128, "Threads for each SM from which full blocks keep all SMs busy (128: a block)"]
work_per_cycle = [0.75, "The same for blocks of more threads (0.75: an H200 reaches 0.83, and 0.7 with more work)"]
most_share = [0.8,
    "Share of the memory's bandwidth that 8 bytes for each thread take at most: above, bandwidth is the limit"]
blocks_per_cycle = [0.6,
    "Blocks per cycle of the maximum clock from which their start is the limit (0.6: an H100 reaches 0.6 to 0.84)"]
*/
WITH shapes AS (
    SELECT
        s.*, g.clock_hz, g.sm_count,
        list_product(list_transform(string_split(s.block, 'x'), lambda part: part::DOUBLE)) AS threads,
        list_product(list_transform(string_split(s.grid, 'x'), lambda part: part::DOUBLE)) AS blocks,
        threads / (32 * ceil(threads / 32)) AS lane_share,
        coalesce(1e9 * blocks / s.avg_ns >= $blocks_per_cycle * g.clock_hz, false) AS is_start_bound,
        -- In these languages, the program chooses how much work a block has.
        coalesce(
            1e9 * blocks / s.avg_ns >= $work_per_cycle * g.clock_hz AND threads >= $few_threads AND threads % 32 = 0
            AND coalesce(n.provenance, 'hand-written') IN ('hand-written', 'Numba', 'Triton')
            AND 1e9 * 8 * threads * blocks / s.avg_ns < $most_share * g.memory_bytes_per_s, false
        ) AS is_little_work,
        1 - least(lane_share, CASE
            WHEN is_little_work THEN 1e9 * 2 * threads * blocks / (g.memory_bytes_per_s * s.avg_ns)
            WHEN is_start_bound AND threads < $few_threads THEN threads / 256
        END) AS saved_share,
        if(is_little_work, least(0.5 * saved_share, 1 - 4 * (1 - saved_share)), 0.5 * saved_share) AS low_share
    FROM _steady_shapes AS s
    LEFT JOIN kernel_names AS n USING (name)
    CROSS JOIN (
        SELECT
            max(clock_hz) AS clock_hz, max(sm_count) AS sm_count, max(memory_bytes_per_s) AS memory_bytes_per_s
        FROM gpus
    ) AS g
    WHERE s.family IS DISTINCT FROM 'comm' AND s.kernel_time_pct >= $min_pct AND s.avg_ns >= $min_avg_ns
        -- Libraries and compilers choose the blocks of other kernels.
        AND coalesce(n.provenance, 'hand-written') IN (
            'hand-written', 'Numba', 'Triton', 'OpenACC', 'OpenMP', 'Kokkos', 'RAJA', 'SYCL', 'Julia', 'Halide', 'Mojo'
        )
        AND NOT regexp_matches(s.name, '^cupyx_|gemv(2T|2N|NSP)')
),
odd_shapes AS (
    SELECT
        *, sum(total_ns * saved_share) OVER (PARTITION BY is_little_work) AS saved_ns,
        sum(total_ns * low_share) OVER (PARTITION BY is_little_work) AS saved_low_ns,
        nullif(count(*) OVER (PARTITION BY is_little_work) - 1, 0) AS more_kernels
    FROM shapes
    WHERE (threads < 32 OR threads % 32 <> 0 OR is_start_bound AND threads < $few_threads OR is_little_work)
        -- The same threads in full blocks still give each SM one.
        AND blocks > 1 AND threads * blocks >= $full_threads * coalesce(sm_count, 0)
    ORDER BY saved_ns DESC, total_ns * saved_share DESC, name
    LIMIT 1
)
SELECT
    least(o.saved_ns / t.units, limits.high_limit_ns) AS recoverable_ns,
    least(o.saved_low_ns / t.units, limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    kernel_base_name(o.name) AS place,
    kernel_base_name(o.name) AS kernel, o.threads::BIGINT AS threads,
    if(o.is_little_work, 'work', 'threads') AS cure_case,
    CASE WHEN NOT o.is_little_work THEN 100 * o.lane_share END AS lane_pct,
    CASE WHEN o.is_little_work THEN o.blocks::BIGINT END AS many_blocks, o.is_start_bound,
    round(o.blocks / o.avg_ns * 1e3)::BIGINT AS blocks_per_us,
    o.more_kernels, o.calls / t.units AS calls, o.avg_ns AS mean_ns, o.kernel_time_pct
FROM odd_shapes AS o, _step_totals AS t, _step_limits AS limits
WHERE saving_low_ns > 0
