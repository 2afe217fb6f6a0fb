CREATE VIEW _gap_activity AS
FROM facts.listed_activity;

COMMENT ON VIEW _gap_activity IS
    'All rows of `_host_activity` that overlap one of the `longest_gaps`, and all calls that launched '
    '`_gap_operations`; may contain more.';
COMMENT ON COLUMN _gap_activity.kind IS
    'api: a CUDA API call; os: an operating system call; profiler: the profiler blocked the thread';
COMMENT ON COLUMN _gap_activity.start_ns IS 'When it began';
COMMENT ON COLUMN _gap_activity.end_ns IS 'When it was over';
COMMENT ON COLUMN _gap_activity.name_id IS 'What was called: in `_api_names` and `strings`';
COMMENT ON COLUMN _gap_activity.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _gap_activity.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN _gap_activity.correlation_id IS
    'Joins an API call with what it caused on the GPU, together with process_id';
