CREATE VIEW _stream_times AS
FROM facts.stream_times;

COMMENT ON VIEW _stream_times IS
    'How long each stream was busy, and how much of that at the same time as other streams of its GPU: one row per '
    'stream that ran operations.';
COMMENT ON COLUMN _stream_times.gpu_id IS 'The GPU, as in `gpus`';
COMMENT ON COLUMN _stream_times.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _stream_times.device_id IS 'CUDA device number';
COMMENT ON COLUMN _stream_times.stream_id IS 'CUDA stream id';
COMMENT ON COLUMN _stream_times.kernels IS 'Kernels that ran on it';
COMMENT ON COLUMN _stream_times.copies IS 'Copies and memsets';
COMMENT ON COLUMN _stream_times.graphs IS 'CUDA graphs that ran as a whole, traced without their kernels';
COMMENT ON COLUMN _stream_times.busy_ns IS 'Union of their times';
COMMENT ON COLUMN _stream_times.within_ns IS 'The part of busy_ns within the wall time';
COMMENT ON COLUMN _stream_times.gpu_busy_ns IS 'Time in which the GPU was busy with any stream';
COMMENT ON COLUMN _stream_times.overlap_ns IS 'Part of busy_ns in which another stream of the GPU was busy too';
COMMENT ON COLUMN _stream_times.span_ns IS 'From its first operation to the end of its last';
