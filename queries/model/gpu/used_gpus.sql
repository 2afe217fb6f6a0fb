CREATE VIEW used_gpus AS
FROM facts.used_gpus;

COMMENT ON VIEW used_gpus IS 'The GPUs in scope, and how long each was busy: the sum of `gpu_busy`.';
COMMENT ON COLUMN used_gpus.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN used_gpus.busy_ns IS 'How long it was busy within the wall time';
