CREATE VIEW _gap_samples AS
WITH samples AS (
    SELECT *, start_ns + 1 AS end_ns FROM facts.gap_samples
)
SELECT * EXCLUDE (end_ns) FROM in_scope('samples');

COMMENT ON VIEW _gap_samples IS 'The CPU samples within `_cpu_pieces` in which the thread had a CPU.';
COMMENT ON COLUMN _gap_samples.gpu_id IS 'The GPU that waited';
COMMENT ON COLUMN _gap_samples.thread IS 'The thread, as in `_cpu_pieces`';
COMMENT ON COLUMN _gap_samples.start_ns IS 'When the sample was taken';
COMMENT ON COLUMN _gap_samples.sample_id IS 'Id of its call chain in `call_frames`, of = ''sample''';
COMMENT ON COLUMN _gap_samples.os_call_id IS
    'Name of the operating system call that the thread was in; NULL outside all calls';
COMMENT ON COLUMN _gap_samples.range_id IS 'Innermost NVTX range around it; NULL outside all ranges';
