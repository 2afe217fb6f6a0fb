CREATE VIEW _held_gaps AS
FROM facts.held_gaps;

COMMENT ON VIEW _held_gaps IS
    'The waits, allocations and frees of the thread that an idle GPU waited for: one row per call and gap in which '
    'it ended, or that its own copy ended.';
COMMENT ON COLUMN _held_gaps.charge IS 'wait or allocation';
COMMENT ON COLUMN _held_gaps.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _held_gaps.thread_id IS 'Thread that called, and launched what ended the gap';
COMMENT ON COLUMN _held_gaps.call_start_ns IS 'When the call began';
COMMENT ON COLUMN _held_gaps.start_ns IS 'The same; for a wait as in `waits`';
COMMENT ON COLUMN _held_gaps.end_ns IS 'When the call returned';
COMMENT ON COLUMN _held_gaps.held_ns IS 'How long it blocked the host';
COMMENT ON COLUMN _held_gaps.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN _held_gaps.gap_start_ns IS 'When the GPU became idle, as in `gpu_gaps`';
COMMENT ON COLUMN _held_gaps.gap_end_ns IS 'When the next operation started';
COMMENT ON COLUMN _held_gaps.dry_ns IS
    'When the operations before it ended: gap_start_ns, unless the scope cut the gap';
