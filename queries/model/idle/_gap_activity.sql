CREATE VIEW _gap_activity AS
FROM facts.listed_activity;

COMMENT ON VIEW _gap_activity IS 'Of `_host_activity` all that overlaps one of the `longest_gaps` and all calls that launched `_gap_operations`; and more, but not all.';
COMMENT ON COLUMN _gap_activity.kind IS 'api: a CUDA API call; os: a call of the operating system; profiler: the profiler held the thread up';
COMMENT ON COLUMN _gap_activity.start_ns IS 'When it began';
COMMENT ON COLUMN _gap_activity.end_ns IS 'When it was over';
COMMENT ON COLUMN _gap_activity.name_id IS 'What was called: in `_api_names` and `strings`';
COMMENT ON COLUMN _gap_activity.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _gap_activity.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN _gap_activity.correlation_id IS 'Joins an API call with what it caused on the GPU, together with process_id';
