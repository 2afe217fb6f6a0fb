CREATE VIEW step_idle AS
FROM facts.step_idle;

COMMENT ON VIEW step_idle IS
    'The idle time of each GPU in each steady step by cause: `gpu_idle` for every step; the parts of a step add up '
    'to `step_gpus.idle_ns`.';
COMMENT ON COLUMN step_idle.step IS 'Number of the step';
COMMENT ON COLUMN step_idle.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN step_idle.cause IS 'As in `gpu_idle`';
COMMENT ON COLUMN step_idle.host IS 'As in `gpu_idle`';
COMMENT ON COLUMN step_idle.idle_ns IS 'How long';
