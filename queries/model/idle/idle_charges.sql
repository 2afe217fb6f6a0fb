CREATE VIEW idle_charges AS
FROM facts.idle_charges;

COMMENT ON VIEW idle_charges IS
    'The waits and allocations that GPU idle time is attributed to: one row per step, GPU, wait or allocation, gap, '
    'and what the host did. A wait gets the idle time in which the thread that launched the next operation was in '
    'it, and the starved time after it in the same gap, up to the rest of the time that the wait blocked the host: '
    'without the wait, the host would have been that far ahead. An allocation or a free gets the idle time in which '
    'that thread was in it. No idle time is counted twice.';
COMMENT ON COLUMN idle_charges.step IS 'The steady step in whose wall time the idle time is; NULL outside of them';
COMMENT ON COLUMN idle_charges.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN idle_charges.charge IS
    'wait; allocation: of frees too; tracing: half a microsecond for each kernel of a CUDA graph that is traced by '
    'node, by which the launch of the graph takes longer';
COMMENT ON COLUMN idle_charges.process_id IS
    'Process of the wait or allocation: with thread_id and call_start_ns it identifies the row of `waits` or '
    '`api_calls`; NULL for tracing';
COMMENT ON COLUMN idle_charges.thread_id IS 'Its thread';
COMMENT ON COLUMN idle_charges.call_start_ns IS 'When its call began';
COMMENT ON COLUMN idle_charges.gap_start_ns IS
    'When the gap began that the idle time is part of: start_ns of `gpu_gaps`';
COMMENT ON COLUMN idle_charges.cause IS 'What `gpu_idle` calls this time';
COMMENT ON COLUMN idle_charges.host IS 'The same: what the host did in it';
COMMENT ON COLUMN idle_charges.idle_ns IS 'How long';
