CREATE VIEW _cpu_pieces AS
WITH pieces AS (
    FROM facts.cpu_pieces
)
FROM in_scope('pieces');

COMMENT ON VIEW _cpu_pieces IS
    'What a thread did while a GPU waited for it outside of CUDA calls, piece by piece, cut to the scope''s own '
    'time; no row where the trace does not record what a CPU did.';
COMMENT ON COLUMN _cpu_pieces.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _cpu_pieces.thread IS 'Thread that launched next: its process id times 16,777,216, and its thread id';
COMMENT ON COLUMN _cpu_pieces.gap_ns IS 'When the gap began';
COMMENT ON COLUMN _cpu_pieces.start_ns IS 'When the piece began';
COMMENT ON COLUMN _cpu_pieces.end_ns IS 'When it ended';
COMMENT ON COLUMN _cpu_pieces.os_call_id IS
    'Name of the operating system call that the thread was in; NULL outside all calls';
COMMENT ON COLUMN _cpu_pieces.is_off IS 'Whether the thread had no CPU; NULL where its switches were not recorded';
COMMENT ON COLUMN _cpu_pieces.range_id IS 'Innermost NVTX range around it, in `nvtx_nesting`; NULL outside all ranges';
