CREATE VIEW idle_charges AS
FROM facts.idle_charges;

COMMENT ON VIEW idle_charges IS 'What the idle time of GPUs is charged to: one row per step, GPU, wait or allocation, and what the host did. A wait is charged with the idle time in which the thread that launched the next operation was in it, and with what the GPU then starved in the same gap, at most as long as the wait held the host up besides: without it, the host would have been that much ahead. An allocation or a free is charged with the idle time in which that thread was in it. No idle time is charged twice.';
COMMENT ON COLUMN idle_charges.step IS 'The steady step in whose wall the idle time is; NULL outside of them';
COMMENT ON COLUMN idle_charges.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN idle_charges.charge IS 'wait; allocation: of frees too; tracing: half a microsecond for each kernel of a CUDA graph that is traced by its nodes, which the launch of the graph takes longer for it';
COMMENT ON COLUMN idle_charges.process_id IS 'Process of the wait or allocation: with thread_id and call_start_ns it tells which of `waits` or of `api_calls`; NULL for tracing';
COMMENT ON COLUMN idle_charges.thread_id IS 'Its thread';
COMMENT ON COLUMN idle_charges.call_start_ns IS 'When its call began';
COMMENT ON COLUMN idle_charges.cause IS 'What `gpu_idle` calls this time';
COMMENT ON COLUMN idle_charges.host IS 'The same: what the host did in it';
COMMENT ON COLUMN idle_charges.idle_ns IS 'How long';
