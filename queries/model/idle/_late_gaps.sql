CREATE VIEW _late_gaps AS
SELECT gpu_id, start_ns, thread
FROM facts.idle_time
WHERE host IN ('late', 'profiler', 'blocking copies');

COMMENT ON VIEW _late_gaps IS 'Which thread was late, of the gaps of each GPU that end with an operation that the host launched late, or with a copy that it was blocked in. A gap in which the profiler held the thread up has several rows; one begins with the gap.';
COMMENT ON COLUMN _late_gaps.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _late_gaps.start_ns IS 'When the GPU became idle, also where a scope cuts the gap';
COMMENT ON COLUMN _late_gaps.thread IS 'The thread: its process id times 16,777,216, and its thread id';
