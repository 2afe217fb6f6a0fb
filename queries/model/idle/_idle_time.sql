CREATE VIEW _idle_time AS
SELECT *, start_ns AS gap_ns, end_ns AS gap_end_ns FROM facts.idle_time;

COMMENT ON VIEW _idle_time IS
    'When each GPU was idle over the wall time of the whole trace, with the launch call of the operation that ended '
    'it, cut where the profiler blocked the launching thread: input of `_idle_in` and `_idle_of`.';
COMMENT ON COLUMN _idle_time.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _idle_time.start_ns IS 'When the GPU became idle';
COMMENT ON COLUMN _idle_time.end_ns IS 'When the next operation started';
COMMENT ON COLUMN _idle_time.thread IS
    'Thread that launched it: its process id times 16,777,216, and its thread id; NULL where the launch call is not '
    'in the trace';
COMMENT ON COLUMN _idle_time.call_ns IS 'When the thread that launched it entered the launch call';
COMMENT ON COLUMN _idle_time.returned_ns IS 'When the call returned';
COMMENT ON COLUMN _idle_time.is_copy IS 'Whether the call is a blocking copy';
COMMENT ON COLUMN _idle_time.host IS
    'late; or why the host was not: same launch call, launched before, launch call in progress, managed memory (pages '
    'moved without a call), blocking copies (the call is a copy into pageable host memory, and was in progress), '
    'not in the trace, before the first operation, after the last operation; or profiler, which blocked the thread';
COMMENT ON COLUMN _idle_time.sync_ns IS
    'For a late gap, how long its thread was in calls that wait, before the launch call';
COMMENT ON COLUMN _idle_time.copy_ns IS 'How long in copies that block';
COMMENT ON COLUMN _idle_time.alloc_ns IS 'How long in calls that allocate or free memory';
COMMENT ON COLUMN _idle_time.api_ns IS 'How long in all other calls';
COMMENT ON COLUMN _idle_time.gap_ns IS 'start_ns before any cut';
COMMENT ON COLUMN _idle_time.gap_end_ns IS 'end_ns before any cut';
