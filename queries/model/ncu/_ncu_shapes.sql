/*
description = """One row per kernel, grid and block that ncu profiled, under the kernel's name in the trace: means over
    the launches profiled."""
stored = true
needs = "raw.ncu_launches"
[columns]
name_id = "Id of the kernel's name in the trace, as in `kernel_names`"
sm_pct = "SM throughput, of its peak"
memory_pct = "Memory throughput, of its peak"
dram_pct = "DRAM throughput, of its peak"
l2_pct = "L2 throughput, of its peak"
l1_pct = "L1 throughput, of its peak"
bound = "What bounds it, as in `ncu_kernels`"
memory_level = "Which part of memory it uses most, as in `ncu_kernels`; meaningful for memory-bound kernels"
dram_bytes = "Bytes read from DRAM and written to it, of one launch"
theoretical_occupancy_pct = "Theoretical occupancy by ncu"
launches = "The launches profiled, in `ncu_launches`"
*/
-- Kernels are the same if name, grid and block agree. nsys and ncu may spell a name differently, so keys of names are
-- compared. If no name agrees, another instance of the function's template matches, if ncu profiled only one. Without
-- ncu data, no string is read.
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
        memory_level_of(avg(dram_pct), avg(l2_hit_pct), avg(l1_hit_pct), avg(l1_pct), avg(l2_pct)) AS memory_level,
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
