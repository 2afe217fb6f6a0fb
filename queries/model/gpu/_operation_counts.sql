CREATE VIEW _operation_counts AS
FROM facts.operation_counts;

COMMENT ON VIEW _operation_counts IS
    'How many operations there are on each stream by kind and name, and how long they took.';
COMMENT ON COLUMN _operation_counts.kind IS 'kernel, copy, memset or graph, as in `gpu_ops`';
COMMENT ON COLUMN _operation_counts.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _operation_counts.device_id IS 'CUDA device number';
COMMENT ON COLUMN _operation_counts.stream_id IS 'CUDA stream id';
COMMENT ON COLUMN _operation_counts.name_id IS 'A kernel''s name, in `strings` and `kernel_names`';
COMMENT ON COLUMN _operation_counts.label IS 'What it is, if not a kernel, as in `gpu_ops`';
COMMENT ON COLUMN _operation_counts.operations IS 'Operations';
COMMENT ON COLUMN _operation_counts.called IS 'Kernels among them whose launch call is in the trace';
COMMENT ON COLUMN _operation_counts.gpu_ns IS 'Sum of their durations';
