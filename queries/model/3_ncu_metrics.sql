-- Nothing is imported from ncu yet.
CREATE VIEW ncu_metrics AS
SELECT
    NULL::BIGINT AS launch, NULL::VARCHAR AS kernel, NULL::VARCHAR AS metric, NULL::DOUBLE AS value, NULL::VARCHAR AS unit,
    NULL::BIGINT AS grid_x, NULL::BIGINT AS grid_y, NULL::BIGINT AS grid_z,
    NULL::BIGINT AS block_x, NULL::BIGINT AS block_y, NULL::BIGINT AS block_z
WHERE false;

COMMENT ON VIEW ncu_metrics IS 'One row per launch and metric that ncu collected.';
COMMENT ON COLUMN ncu_metrics.launch IS 'The launch';
COMMENT ON COLUMN ncu_metrics.kernel IS 'The kernel''s name as ncu prints it';
COMMENT ON COLUMN ncu_metrics.metric IS 'ncu''s name of the metric';
COMMENT ON COLUMN ncu_metrics.value IS 'The value in the base unit';
COMMENT ON COLUMN ncu_metrics.unit IS 'The base unit';
COMMENT ON COLUMN ncu_metrics.grid_x IS 'Blocks in the grid, x';
COMMENT ON COLUMN ncu_metrics.grid_y IS 'Blocks in the grid, y';
COMMENT ON COLUMN ncu_metrics.grid_z IS 'Blocks in the grid, z';
COMMENT ON COLUMN ncu_metrics.block_x IS 'Threads in a block, x';
COMMENT ON COLUMN ncu_metrics.block_y IS 'Threads in a block, y';
COMMENT ON COLUMN ncu_metrics.block_z IS 'Threads in a block, z';
