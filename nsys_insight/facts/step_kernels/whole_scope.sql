-- If no step is steady, the kernels are those of the entire scope, without a step number.
INSERT INTO facts.step_kernels BY NAME
SELECT
    NULL AS step, name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, count(*) AS calls,
    sum(duration_ns)::BIGINT AS kernel_ns
FROM kernel_events
GROUP BY ALL
