/*
description = "The operations and bytes that ncu counted, by name, grid and block of the kernel."
[columns]
name_id = "The kernel's name"
grid_x = "Grid: blocks in x"
grid_y = "Grid: blocks in y"
grid_z = "Grid: blocks in z"
block_x = "Block: threads in x"
block_y = "Block: threads in y"
block_z = "Block: threads in z"
ncu_precision = "The precision of most launches"
ncu_flop = "Operations per launch in it"
other_flop_count = "Operations in other precisions"
l2_bytes = "Bytes that L2 served"
l1_bytes = "Bytes that L1 served"
ncu_ns = "Duration under ncu"
*/
SELECT
    s.name_id, s.grid_x, s.grid_y, s.grid_z, s.block_x, s.block_y, s.block_z,
    mode(r.precision) AS ncu_precision,
    avg(r.flop_count) AS ncu_flop,
    avg(r.other_flop_count) AS other_flop_count,
    avg(r.l2_bytes) AS l2_bytes,
    avg(r.l1_bytes) AS l1_bytes,
    avg(r.duration_ns) AS ncu_ns
FROM (SELECT * EXCLUDE (launches), unnest(launches) AS launch FROM _ncu_shapes) AS s
JOIN ncu_roofline AS r USING (launch)
GROUP BY ALL;
