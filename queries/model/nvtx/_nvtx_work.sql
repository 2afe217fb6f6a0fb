CREATE VIEW _nvtx_work AS
FROM facts.nvtx_work;

COMMENT ON VIEW _nvtx_work IS
    'The GPU work that each thread launched between consecutive instants at which one of its ranges opens or '
    'closes; only where there is any. A range contains the pieces that begin in it.';
COMMENT ON COLUMN _nvtx_work.thread IS 'The thread, as thread_of gives it';
COMMENT ON COLUMN _nvtx_work.start_ns IS 'When the piece begins';
COMMENT ON COLUMN _nvtx_work.gpu_ns IS 'Sum of the durations of what was launched';
COMMENT ON COLUMN _nvtx_work.kernels IS 'Number of kernels';
COMMENT ON COLUMN _nvtx_work.first_ns IS 'When the first operation starts';
COMMENT ON COLUMN _nvtx_work.last_ns IS 'When the last one ends';
