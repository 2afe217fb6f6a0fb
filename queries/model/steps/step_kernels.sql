CREATE VIEW step_kernels AS
SELECT s.step, k.name_id, count(*) AS calls, sum(k.duration_ns)::BIGINT AS kernel_ns
FROM (
    SELECT process_id, name_id, duration_ns, coalesce(api_start_ns, start_ns) AS launched_ns FROM launches
) AS k
ASOF JOIN (
    SELECT process_id, step, phase, host_start_ns FROM steps
) AS s ON s.process_id = k.process_id AND s.host_start_ns <= k.launched_ns
WHERE s.phase = 'steady'
GROUP BY s.step, k.name_id;

COMMENT ON VIEW step_kernels IS 'Which kernels each steady step launched, and their time: one row per step and kernel name.';
COMMENT ON COLUMN step_kernels.step IS 'Number of the step';
COMMENT ON COLUMN step_kernels.name_id IS 'The kernel''s name, in `strings` and `kernel_names`';
COMMENT ON COLUMN step_kernels.calls IS 'How many of them the step launched';
COMMENT ON COLUMN step_kernels.kernel_ns IS 'Sum of their durations';
