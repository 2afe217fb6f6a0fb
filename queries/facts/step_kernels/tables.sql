/* scratch = "steps" */
-- The kernels that the steady steps launched, with their grids and blocks. If no step is steady, the kernels of the
-- entire scope, without a step number.
CREATE TABLE IF NOT EXISTS facts.step_kernels (
    step BIGINT, name_id BIGINT, grid_x BIGINT, grid_y BIGINT, grid_z BIGINT, block_x BIGINT, block_y BIGINT,
    block_z BIGINT,
    calls BIGINT, kernel_ns BIGINT
);
