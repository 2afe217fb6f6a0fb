CREATE VIEW _call_counts AS
FROM facts.call_counts;

COMMENT ON VIEW _call_counts IS
    'How many API calls each thread made of each function, including calls inside other calls.';
COMMENT ON COLUMN _call_counts.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _call_counts.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN _call_counts.name IS 'Function, without the suffixes of the linker';
COMMENT ON COLUMN _call_counts.call_group IS 'As in `api_calls`';
COMMENT ON COLUMN _call_counts.calls IS 'Calls';
