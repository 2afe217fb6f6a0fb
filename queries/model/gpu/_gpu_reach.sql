CREATE VIEW _gpu_reach AS
FROM facts.gpu_reach;

COMMENT ON VIEW _gpu_reach IS
    'The operations of `_gpu_work`, each with the latest end of those before it: busy time and gaps follow from '
    'this in one pass.';
COMMENT ON COLUMN _gpu_reach.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _gpu_reach.start_ns IS 'When the operation started on the GPU';
COMMENT ON COLUMN _gpu_reach.end_ns IS 'When it ended; never before its start';
COMMENT ON COLUMN _gpu_reach.running_end_ns IS
    'The latest end of the operations that started before it; NULL for the first';
COMMENT ON COLUMN _gpu_reach.call IS
    'Its launch call: the correlation id times 16,777,216, plus the process id; NULL where the trace lacks the id';
COMMENT ON COLUMN _gpu_reach.is_same_call IS
    'Whether the operation before it on the GPU is of the same launch call, as in a CUDA graph';
