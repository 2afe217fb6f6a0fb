CREATE VIEW _gap_operations AS
FROM facts.listed_operations;

COMMENT ON VIEW _gap_operations IS 'The operations on either side of each of the `longest_gaps`.';
COMMENT ON COLUMN _gap_operations.gpu_id IS
    'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _gap_operations.start_ns IS 'When the operation started on the GPU';
COMMENT ON COLUMN _gap_operations.end_ns IS 'When it ended; never before its start';
COMMENT ON COLUMN _gap_operations.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _gap_operations.correlation_id IS 'Joins with `_gap_activity`, together with process_id';
COMMENT ON COLUMN _gap_operations.name IS 'A kernel''s full name, or what the operation is: H2D copy, memset, graph 4';
