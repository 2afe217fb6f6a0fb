/*
code = "NSI404"
title = "Low theoretical occupancy"
family = "occupancy"
overlaps = true
meaning = """
Registers, shared memory or the block size limit how many warps an SM holds, so it may have none to run while others
wait for memory."""
evidence = [
    """{place}: occupancy {occupancy_pct}, limited by {limited_by}, {calls:call} {per} of {mean_ns} on average,
    {kernel_time_pct} of kernel time""",
    "one more block on each SM needs {next_step}",
    "{more_shapes:more such launch shape}",
]
skip_if = "ncu shows it near its roofline: eight active warps per SM often hide all latency."
effort = "function"
links = ["CUDA C++ Best Practices Guide, Occupancy"]
report = "occupancy"
when = """
SELECT 1 FROM launch_shapes JOIN kernel_names USING (name_id)
WHERE family NOT IN ('gemm', 'attention', 'comm')
GROUP BY name, grid_x, grid_y, grid_z, block_x, block_y, block_z
HAVING min(occupancy_pct) < $below_pct AND max(waves_per_sm) >= 1 AND max(max_ns) >= $min_avg_ns
LIMIT 1"""

[fix]
any = """
Depending on the limit: fewer registers per thread (smaller tiles), less shared memory per block (fewer stages), or
blocks of 128 to 256 threads."""
cuda = """
Depending on the limit: smaller tiles or __launch_bounds__ (registers), fewer stages (shared memory), 128 to 256
threads (blocks)."""
numba = "Depending on the limit: cuda.jit(max_registers=...), less shared memory, or 128 to 256 threads in a block."
openacc = "Set vector_length(128), and compile with -gpu=maxregcount:N if registers are the limit."
openmp = "Set thread_limit(128), and compile with -gpu=maxregcount:N if registers are the limit."

[params]
min_avg_ns = [10000,
    "Shorter kernels are latency-bound, whatever their occupancy (twice the launch cost of classify-kernels)"]
below_pct = [40.0, "Theoretical occupancy below which it counts as low (40: the usual limit of rules for ncu)"]
*/
WITH low_shapes AS (
    SELECT s.*, o.occupancy_pct, o.limited_by, o.next_step
    FROM _steady_shapes AS s
    JOIN (
        FROM occupancy_report QUALIFY row_number() OVER (PARTITION BY name, grid, block ORDER BY total_ns DESC) = 1
    ) AS o USING (name, grid, block)
    LEFT JOIN kernel_names AS n USING (name)
    -- Matrix products and attention run best with few warps and many registers; communication waits. Blocks of less
    -- than a warp have a finding of their own: their warps are mostly empty, however many an SM holds.
    WHERE s.family NOT IN ('gemm', 'attention', 'comm')
        AND o.occupancy_pct < $below_pct AND s.avg_ns >= $min_avg_ns AND o.waves_per_sm >= 1
        -- Those who run kernels of libraries cannot change their registers and blocks.
        AND coalesce(n.provenance, 'hand-written') IN (
            'hand-written', 'CuPy', 'Numba', 'Triton', 'CuTe', 'cuTile', 'OpenACC', 'OpenMP', 'Kokkos', 'RAJA', 'SYCL',
            'Julia', 'Halide', 'Mojo'
        )
        AND list_product(list_transform(string_split(s.block, 'x'), lambda part: part::DOUBLE)) >= 32
),
kernel_gpu_time AS (
    SELECT time_ns * (1 - coalesce((SELECT whole_pct FROM _graph_tracing WHERE wholes > 0), 0) / 100) AS gpu_ns
    FROM classify_report WHERE part = 'gpu'
),
largest_shape AS (
    FROM low_shapes ORDER BY total_ns DESC, name, grid, block LIMIT 1
)
SELECT
    NULL AS recoverable_ns,
    k.gpu_ns * s.kernel_time_pct / w.time_ns AS wall_pct,
    kernel_base_name(l.name) AS place,
    l.occupancy_pct, l.limited_by, l.calls / t.units AS calls, l.avg_ns AS mean_ns, l.kernel_time_pct,
    -- Without the number of blocks.
    split_part(l.next_step, ': ', 2) AS next_step,
    nullif(s.shapes - 1, 0) AS more_shapes
FROM kernel_gpu_time AS k, largest_shape AS l, _step_totals AS t, (FROM classify_report WHERE part = 'wall') AS w,
    (SELECT sum(kernel_time_pct) AS kernel_time_pct, count(*) AS shapes FROM low_shapes HAVING count(*) > 0) AS s
