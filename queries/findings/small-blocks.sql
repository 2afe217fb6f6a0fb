/*
code = "NSI422"
title = "Blocks have an odd or small number of threads"
family = "small-blocks"
explains = ["low-occupancy"]
meaning = """
A warp has 32 threads: blocks of other sizes than multiples of 32 leave
lanes of the last warp empty, and blocks of one
warp or less fill an SM only in part."""
evidence = [
    "{kernel} has blocks of {threads:thread}, which use {lane_pct} of the lanes of their warps",
    "{calls:call} {per} of {mean_ns} on average, {kernel_time_pct} of kernel time",
]
caveat = """
Another limit, such as memory bandwidth, is reached already."""
effort = "line"
estimate = """
High: the time of the kernel times the share of empty lanes; of blocks below 32 threads up to half of it. Low: half of
that."""
links = ["CUDA C++ Best Practices Guide, Thread and Block Heuristics"]
report = "launch-configs"

[cure]
any = "Use blocks of 128 to 256 threads, a multiple of 32."
cuda = "Launch with 128 to 256 threads in a block, a multiple of 32."
cupy = "Launch the RawKernel with 128 to 256 threads in a block, a multiple of 32."
numba = "Launch with 128 to 256 threads in a block, a multiple of 32."
openacc = "Set vector_length(128), and let gangs and vectors share the loop: gang vector."
openmp = "Set thread_limit(128), and use teams distribute parallel for."
julia = "Launch with threads=256, a multiple of 32: @cuda threads=256 blocks=cld(n, 256)."

[params.least_pct]
default = 5.0
help = "Share of the kernel time from which a kernel is named (5: a clear part)"

[params.least_avg_ns]
default = 10000
help = "Shorter kernels are latency-bound, whatever their blocks (twice a launch)"
*/
WITH shapes AS (
    SELECT
        *,
        list_reduce(list_transform(string_split(block, 'x'), lambda part: part::BIGINT), lambda a, b: a * b) AS threads,
        threads / (32 * ceil(threads / 32)) AS lane_share
    FROM _steady_shapes
    WHERE family IS DISTINCT FROM 'comm'
),
odd_shapes AS (
    FROM shapes
    WHERE (threads < 32 OR threads % 32 <> 0) AND kernel_time_pct >= $least_pct AND avg_ns >= $least_avg_ns
        AND grid <> '1x1x1'
    ORDER BY total_ns * (1 - lane_share) DESC, name
    LIMIT 1
)
SELECT
    least(o.total_ns * least(1 - o.lane_share, 0.8) / t.units, t.high_limit_ns) AS recoverable_ns,
    least(0.5 * o.total_ns * least(1 - o.lane_share, 0.8) / t.units, t.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    kernel_base_name(o.name) AS place,
    kernel_base_name(o.name) AS kernel, o.threads, 100 * o.lane_share AS lane_pct, o.calls / t.units AS calls,
    o.avg_ns AS mean_ns, o.kernel_time_pct
FROM odd_shapes AS o, _step_totals AS t
WHERE saving_low_ns > 0
