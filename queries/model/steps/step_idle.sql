CREATE VIEW step_idle AS
WITH windows AS (
    SELECT start_ns, end_ns FROM steps WHERE phase = 'steady'
)
SELECT s.step, i.gpu_id, i.cause, i.host, i.idle_ns
FROM _idle_in('windows') AS i
JOIN steps AS s ON s.start_ns = i.window_ns AND s.phase = 'steady'
JOIN step_gpus AS g ON g.step = s.step AND g.gpu_id = i.gpu_id;

COMMENT ON VIEW step_idle IS 'What the idle time of each GPU in each steady step is owed to: `gpu_idle` for every step; the parts of a step add up to `step_gpus.idle_ns`.';
COMMENT ON COLUMN step_idle.step IS 'Number of the step';
COMMENT ON COLUMN step_idle.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN step_idle.cause IS 'As in `gpu_idle`';
COMMENT ON COLUMN step_idle.host IS 'As in `gpu_idle`';
COMMENT ON COLUMN step_idle.idle_ns IS 'How long';
