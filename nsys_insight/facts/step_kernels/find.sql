-- A kernel belongs to the step in which its launch call begins. If the trace lacks the call, it belongs to the step in
-- whose step time it starts.
INSERT INTO facts.step_kernels BY NAME
WITH steady_steps AS (
    SELECT step, host_start_ns, host_end_ns, start_ns, end_ns FROM steps WHERE phase = 'steady'
),
launched_kernels AS NOT MATERIALIZED (
    SELECT name_id, grid, block, end_ns - start_ns AS duration_ns, call_ns AS start_ns
    FROM internal.step_launched
    WHERE kind = 'kernel' AND call_ns IS NOT NULL
),
host_intervals AS (
    SELECT step, host_start_ns AS start_ns, host_end_ns AS end_ns FROM steady_steps
),
kernels_in_steps AS (
    SELECT step, name_id, grid, block, duration_ns FROM begun_in('launched_kernels', 'host_intervals')
    UNION ALL
    SELECT s.step, k.name_id, k.grid, k.block, k.end_ns - k.start_ns
    FROM (FROM internal.step_launched WHERE kind = 'kernel' AND call_ns IS NULL) AS k
    ASOF JOIN steady_steps AS s ON s.start_ns <= k.start_ns
    WHERE k.start_ns < s.end_ns
)
SELECT
    step, name_id, x_of(grid) AS grid_x, y_of(grid) AS grid_y, z_of(grid) AS grid_z,
    x_of(block) AS block_x, y_of(block) AS block_y, z_of(block) AS block_z,
    count(*) AS calls, sum(duration_ns)::BIGINT AS kernel_ns
FROM kernels_in_steps
GROUP BY step, name_id, grid, block
