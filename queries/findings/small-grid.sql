/*
code = "NSI403"
title = "Kernels are too small for the GPU"
family = "grid"
explains = ["repeated-step"]
meaning = "They have fewer blocks than the GPU has SMs, so part of the GPU does nothing while they run."
evidence = [
    """{place}: grid {grid} on {sm_count} SMs, {calls:call} {per} of {mean_ns} on average, {kernel_time_pct} of kernel
    time""",
    "{more_shapes:more such launch shape}",
]
skip_if = "Other kernels run concurrently, or the work cannot be split."
effort = "function"
estimate = "The time of these kernels times the share of the SMs without a block."
links = ["CUDA C++ Best Practices Guide, Execution Configuration Optimizations"]
example = "sample_traces/decode_graph_node.sqlite"
report = "launch-configs"
when = "SELECT 1 FROM launch_shapes WHERE max_ns >= $min_avg_ns AND blocks_count < sm_count LIMIT 1"

[fix]
any = """
Use more blocks: split the work along another dimension, give each thread less, batch; or run the kernels concurrently
with others."""
pytorch = "Batch the work of these kernels, or use an operation that splits it (a larger batch, one fused operation)."
openacc = "Add gangs: collapse the outer loops (collapse), or set num_gangs."
openmp = "Add teams: collapse the outer loops (collapse), or set num_teams."

[params]
min_avg_ns = [10000,
    "Shorter kernels are latency-bound, whatever their grid (twice the launch cost of classify-kernels)"]
few_blocks_share = [0.1, "Number of blocks, as a share of the SMs, up to which a single shape is left to one-block"]
few_blocks_ns = [20000, "Mean time of a kernel from which a single shape is left to one-block"]
*/
-- Only blocks_count / sm_count of the SMs have a block: that share of the time would suffice. Kernels that communicate
-- take as many blocks as they need.
WITH shape_blocks AS (
    SELECT
        coalesce(n.name, '(no name)') AS name, grid_x || 'x' || grid_y || 'x' || grid_z AS grid,
        block_x || 'x' || block_y || 'x' || block_z AS block,
        max_by(blocks_count, total_ns) AS blocks_count, max_by(sm_count, total_ns) AS sm_count
    FROM launch_shapes LEFT JOIN kernel_names AS n USING (name_id)
    GROUP BY ALL
),
small_shapes AS (
    SELECT s.*, l.blocks_count, l.sm_count, s.kernel_time_pct * (1 - l.blocks_count / l.sm_count) AS saved_pct
    FROM _steady_shapes AS s
    JOIN shape_blocks AS l USING (name, grid, block)
    WHERE l.blocks_count < l.sm_count AND s.avg_ns >= $min_avg_ns AND s.family IS DISTINCT FROM 'comm'
        -- It starts early, and its duration is the wait for the kernel before it.
        AND s.name NOT LIKE '%::init_device_workspace%'
),
-- The GPU time that is known by kernel: without graphs that ran as one operation.
kernel_gpu_time AS (
    SELECT time_ns * (1 - coalesce((SELECT whole_pct FROM _graph_tracing WHERE wholes > 0), 0) / 100) AS gpu_ns
    FROM classify_report WHERE part = 'gpu'
),
largest_saving AS (
    FROM small_shapes ORDER BY saved_pct DESC, name, grid, block LIMIT 1
)
SELECT
    k.gpu_ns * s.saved_pct / 100 AS recoverable_ns,
    k.gpu_ns * s.saved_pct / w.time_ns AS wall_pct,
    kernel_base_name(l.name) AS place,
    l.grid, l.sm_count, l.calls / t.units AS calls, l.avg_ns AS mean_ns, l.kernel_time_pct,
    nullif(s.shapes - 1, 0) AS more_shapes
FROM kernel_gpu_time AS k, largest_saving AS l, _step_totals AS t, (FROM classify_report WHERE part = 'wall') AS w,
    (SELECT sum(saved_pct) AS saved_pct, count(*) AS shapes FROM small_shapes HAVING count(*) > 0) AS s
-- one-block says all of it about a single shape of few blocks.
WHERE NOT (s.shapes = 1 AND l.blocks_count <= $few_blocks_share * l.sm_count AND l.avg_ns >= $few_blocks_ns)
