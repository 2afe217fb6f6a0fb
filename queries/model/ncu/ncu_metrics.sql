CREATE VIEW ncu_metrics AS
SELECT
    m.launch, l.kernel, m.metric, m.value, m.unit, m.text, l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, l.block_z
FROM raw.ncu_metrics AS m
JOIN raw.ncu_launches AS l USING (launch);

COMMENT ON VIEW ncu_metrics IS
    'One row per launch and metric that ncu collected: all of its raw page, or what its details page shows.';
COMMENT ON COLUMN ncu_metrics.launch IS 'The launch, in `ncu_launches`';
COMMENT ON COLUMN ncu_metrics.kernel IS 'The kernel''s name as ncu prints it';
COMMENT ON COLUMN ncu_metrics.metric IS 'ncu''s name of the metric';
COMMENT ON COLUMN ncu_metrics.value IS
    'The value in the base unit; NULL where ncu could not measure it, or it is not a number';
COMMENT ON COLUMN ncu_metrics.unit IS 'The base unit: ns, byte, hz, byte/s, % …; NULL where there is none';
COMMENT ON COLUMN ncu_metrics.text IS 'A value that is not a number, such as the name of the GPU';
COMMENT ON COLUMN ncu_metrics.grid_x IS 'Blocks in the grid, x';
COMMENT ON COLUMN ncu_metrics.grid_y IS 'Blocks in the grid, y';
COMMENT ON COLUMN ncu_metrics.grid_z IS 'Blocks in the grid, z';
COMMENT ON COLUMN ncu_metrics.block_x IS 'Threads in a block, x';
COMMENT ON COLUMN ncu_metrics.block_y IS 'Threads in a block, y';
COMMENT ON COLUMN ncu_metrics.block_z IS 'Threads in a block, z';
