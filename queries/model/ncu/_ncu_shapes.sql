-- Kernels are the same if name, grid and block agree. nsys and ncu may spell a name differently, so keys of names are
-- compared. If no name agrees, another instance of the function's template matches, if ncu profiled only one. Without
-- ncu data, no string is read.
CREATE VIEW _ncu_shapes AS
WITH keyed_launches AS (
    SELECT
        launch, kernel_key(kernel) AS key, base_name_of_key(key) AS short_name, grid_x, grid_y, grid_z, block_x,
        block_y, block_z,
        sm_pct, memory_pct, dram_pct, l1_pct, l2_pct, l1_hit_pct, l2_hit_pct, theoretical_occupancy_pct,
        coalesce(dram_read_bytes + dram_write_bytes, dram_read_bytes, dram_write_bytes) AS dram_bytes
    FROM raw.ncu_launches
    JOIN _ncu_columns() USING (launch)
),
profiled_shapes AS (
    SELECT
        key, short_name, grid_x, grid_y, grid_z, block_x, block_y, block_z,
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
        count(*) OVER (PARTITION BY short_name, grid_x, grid_y, grid_z, block_x, block_y, block_z) = 1 AS is_unique
    FROM keyed_launches
    GROUP BY key, short_name, grid_x, grid_y, grid_z, block_x, block_y, block_z
),
trace_names AS (
    SELECT *
    FROM (
        SELECT name_id, kernel_key(name) AS key, base_name_of_key(key) AS short_name
        FROM strings
        WHERE EXISTS (FROM raw.ncu_launches)
    )
    WHERE short_name IN (SELECT short_name FROM keyed_launches)
)
SELECT n.name_id, p.* EXCLUDE (key, short_name, is_unique)
FROM trace_names AS n
JOIN profiled_shapes AS p ON p.short_name = n.short_name AND (p.key = n.key OR p.is_unique);

COMMENT ON VIEW _ncu_shapes IS
    'One row per kernel, grid and block that ncu profiled, under the kernel''s name in the trace: means over the '
    'launches profiled.';
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
COMMENT ON COLUMN _ncu_shapes.memory_level IS
    'Which part of memory it uses most, as in `ncu_kernels`; meaningful for memory-bound kernels';
COMMENT ON COLUMN _ncu_shapes.dram_bytes IS 'Bytes read from DRAM and written to it, of one launch';
COMMENT ON COLUMN _ncu_shapes.launches IS 'The launches profiled, in `ncu_launches`';
COMMENT ON COLUMN _ncu_shapes.theoretical_occupancy_pct IS 'Theoretical occupancy by ncu';
