/* scratch = "steps" */
-- Which kernels the steady steps launched, with which grids and blocks; without a number those of the whole scope,
-- where no step is steady.
CREATE TABLE IF NOT EXISTS facts.step_kernels (
    step BIGINT, name_id BIGINT, grid_x BIGINT, grid_y BIGINT, grid_z BIGINT, block_x BIGINT, block_y BIGINT,
    block_z BIGINT,
    calls BIGINT, kernel_ns BIGINT
);
