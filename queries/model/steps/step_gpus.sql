CREATE VIEW step_gpus AS
SELECT step, phase, g.key AS gpu_id, g.value AS busy_ns, duration_ns - g.value AS idle_ns, start_ns, end_ns
FROM (SELECT *, unnest(map_entries(gpus)) AS g FROM facts.steps);

COMMENT ON VIEW step_gpus IS 'How long each GPU that the process used was busy in each step.';
COMMENT ON COLUMN step_gpus.step IS 'Number of the step; NULL for work that belongs to no step';
COMMENT ON COLUMN step_gpus.phase IS 'As in `steps`';
COMMENT ON COLUMN step_gpus.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN step_gpus.busy_ns IS 'How long it was busy';
COMMENT ON COLUMN step_gpus.idle_ns IS 'How long it was idle in the step''s wall time';
COMMENT ON COLUMN step_gpus.start_ns IS 'When the wall time of the step begins';
COMMENT ON COLUMN step_gpus.end_ns IS 'When it ends';
