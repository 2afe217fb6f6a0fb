CREATE VIEW step_kernels AS
SELECT step, name_id, sum(calls)::BIGINT AS calls, sum(kernel_ns)::BIGINT AS kernel_ns
FROM facts.step_kernels
WHERE step IS NOT NULL
GROUP BY step, name_id;

COMMENT ON VIEW step_kernels IS
    'Which kernels each steady step launched, and their time: one row per step and kernel name.';
COMMENT ON COLUMN step_kernels.step IS 'Number of the step';
COMMENT ON COLUMN step_kernels.name_id IS 'The kernel''s name, in `strings` and `kernel_names`';
COMMENT ON COLUMN step_kernels.calls IS 'How many of them the step launched';
COMMENT ON COLUMN step_kernels.kernel_ns IS 'Sum of their durations';
