CREATE VIEW _counted_work AS
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

COMMENT ON VIEW _counted_work IS 'The operations and bytes that ncu counted, by name, grid and block of the kernel.';
COMMENT ON COLUMN _counted_work.name_id IS 'The kernel''s name';
COMMENT ON COLUMN _counted_work.grid_x IS 'Blocks in the grid';
COMMENT ON COLUMN _counted_work.grid_y IS 'The same';
COMMENT ON COLUMN _counted_work.grid_z IS 'The same';
COMMENT ON COLUMN _counted_work.block_x IS 'Threads in a block';
COMMENT ON COLUMN _counted_work.block_y IS 'The same';
COMMENT ON COLUMN _counted_work.block_z IS 'The same';
COMMENT ON COLUMN _counted_work.ncu_precision IS 'The precision of most launches';
COMMENT ON COLUMN _counted_work.ncu_flop IS 'Operations per launch in it';
COMMENT ON COLUMN _counted_work.other_flop_count IS 'Operations in other precisions';
COMMENT ON COLUMN _counted_work.l2_bytes IS 'Bytes that L2 served';
COMMENT ON COLUMN _counted_work.l1_bytes IS 'Bytes that L1 served';
COMMENT ON COLUMN _counted_work.ncu_ns IS 'Duration under ncu';
