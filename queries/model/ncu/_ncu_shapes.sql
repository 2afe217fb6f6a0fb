-- The same kernel is one whose name, grid and block agree; nsys and ncu may spell a name otherwise. Where no name agrees,
-- another instance of the function's template counts, if ncu profiled only one. Without ncu, no string is looked at.
-- A few metrics of ncu_kernels, which has them all: a report that knows of ncu must be as quick where nobody ran it.
CREATE VIEW _ncu_shapes AS
WITH launched AS (
    SELECT
        launch, kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z,
        max(value) FILTER (metric = 'sm__throughput.avg.pct_of_peak_sustained_elapsed') AS sm_pct,
        max(value) FILTER (metric = 'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed') AS memory_pct,
        max(value) FILTER (metric IN ('gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed', 'dram__throughput.avg.pct_of_peak_sustained_elapsed')) AS dram_pct,
        max(value) FILTER (metric = 'lts__throughput.avg.pct_of_peak_sustained_elapsed') AS l2_pct,
        max(value) FILTER (metric = 'l1tex__throughput.avg.pct_of_peak_sustained_active') AS l1_pct,
        max(value) FILTER (metric = 'lts__t_sector_hit_rate.pct') AS l2_hit_pct,
        max(value) FILTER (metric = 'l1tex__t_sector_hit_rate.pct') AS l1_hit_pct,
        sum(value) FILTER (metric IN ('dram__bytes_read.sum', 'dram__bytes_write.sum')) AS dram_bytes,
        max(value) FILTER (metric = 'sm__maximum_warps_per_active_cycle_pct') AS theoretical_occupancy_pct
    FROM ncu_metrics
    GROUP BY launch, kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z
),
profiled AS (
    SELECT
        kernel_key(kernel) AS key, kernel_base_name(kernel) AS short_name, grid_x, grid_y, grid_z, block_x, block_y, block_z,
        avg(sm_pct) AS sm_pct,
        avg(memory_pct) AS memory_pct,
        avg(dram_pct) AS dram_pct,
        avg(l2_pct) AS l2_pct,
        avg(l1_pct) AS l1_pct,
        bound_of(avg(sm_pct), avg(memory_pct)) AS bound,
        memory_level_of(avg(dram_pct), avg(l2_hit_pct), avg(l1_hit_pct)) AS memory_level,
        avg(dram_bytes) AS dram_bytes,
        avg(theoretical_occupancy_pct) AS theoretical_occupancy_pct,
        list(launch ORDER BY launch) AS launches,
        count(*) OVER (PARTITION BY short_name, grid_x, grid_y, grid_z, block_x, block_y, block_z) = 1 AS is_alone
    FROM launched
    GROUP BY key, short_name, grid_x, grid_y, grid_z, block_x, block_y, block_z
),
names AS (
    SELECT s.name_id, kernel_key(s.name) AS key, kernel_base_name(s.name) AS short_name
    FROM strings AS s
    WHERE kernel_base_name(s.name) IN (SELECT kernel_base_name(kernel) FROM raw.ncu_launches)
)
SELECT n.name_id, p.* EXCLUDE (key, short_name, is_alone)
FROM names AS n
JOIN profiled AS p ON p.short_name = n.short_name AND (p.key = n.key OR p.is_alone);

COMMENT ON VIEW _ncu_shapes IS 'One row per kernel, grid and block that ncu profiled, under the kernel''s name in the trace: means over the launches profiled.';
COMMENT ON COLUMN _ncu_shapes.name_id IS 'Id of the kernel''s name in the trace, as in `kernel_names`';
COMMENT ON COLUMN _ncu_shapes.grid_x IS 'Blocks in the grid, x';
COMMENT ON COLUMN _ncu_shapes.grid_y IS 'Blocks in the grid, y';
COMMENT ON COLUMN _ncu_shapes.grid_z IS 'Blocks in the grid, z';
COMMENT ON COLUMN _ncu_shapes.block_x IS 'Threads in a block, x';
COMMENT ON COLUMN _ncu_shapes.block_y IS 'Threads in a block, y';
COMMENT ON COLUMN _ncu_shapes.block_z IS 'Threads in a block, z';
COMMENT ON COLUMN _ncu_shapes.sm_pct IS 'SM throughput, of its peak';
COMMENT ON COLUMN _ncu_shapes.memory_pct IS 'Memory throughput, of its peak';
COMMENT ON COLUMN _ncu_shapes.dram_pct IS 'DRAM throughput, of its peak';
COMMENT ON COLUMN _ncu_shapes.l2_pct IS 'L2 throughput, of its peak';
COMMENT ON COLUMN _ncu_shapes.l1_pct IS 'L1 throughput, of its peak';
COMMENT ON COLUMN _ncu_shapes.bound IS 'What bounds it, as in `ncu_kernels`';
COMMENT ON COLUMN _ncu_shapes.memory_level IS 'Which part of memory it uses most, as in `ncu_kernels`; meaningful for memory-bound kernels';
COMMENT ON COLUMN _ncu_shapes.dram_bytes IS 'Bytes read from DRAM and written to it, of one launch';
COMMENT ON COLUMN _ncu_shapes.launches IS 'The launches profiled, in `ncu_launches`';
COMMENT ON COLUMN _ncu_shapes.theoretical_occupancy_pct IS 'Theoretical occupancy by ncu';
