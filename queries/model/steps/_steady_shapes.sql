/*
description = """Which kernels ran in the steady steps, one row per name, grid and block; those of the whole scope where
    there are no steps."""
stored = true
progress = "kernels of the steady steps"
[columns]
name = "The kernel"
family = "Family of the kernel"
grid = "Blocks in the grid, x × y × z"
block = "Threads in a block, x × y × z"
calls = "How many started in these steps"
total_ns = "Sum of their durations"
avg_ns = "Mean of their durations"
kernel_time_pct = "Share of all kernel time of the steady steps"
*/
-- A table because a dozen rules read it: as a view it was planned again in each of them.
WITH shapes AS (
    SELECT
        name_id, grid_x || 'x' || grid_y || 'x' || grid_z AS grid, block_x || 'x' || block_y || 'x' || block_z AS block,
        calls, total_ns
    FROM (
        SELECT * EXCLUDE (step, calls, kernel_ns), sum(calls)::BIGINT AS calls, sum(kernel_ns)::BIGINT AS total_ns
        FROM facts.step_kernels
        GROUP BY ALL
    )
)
SELECT
    coalesce(n.name, '(no name)') AS name, n.family, s.grid, s.block, s.calls, s.total_ns,
    s.total_ns / s.calls AS avg_ns,
    100.0 * s.total_ns / nullif((SELECT sum(total_ns) FROM shapes), 0) AS kernel_time_pct
FROM shapes AS s
LEFT JOIN kernel_names AS n USING (name_id);
