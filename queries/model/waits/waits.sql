CREATE VIEW waits AS
FROM facts.waits;

COMMENT ON VIEW waits IS
    'One row per time that the host waited for the GPU: calls that synchronize, blocking copies from or to host '
    'memory, and copies into pageable memory, which block even if their name says Async.';
COMMENT ON COLUMN waits.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN waits.thread_id IS 'Thread that waited';
COMMENT ON COLUMN waits.start_ns IS
    'When the wait began; for a copy into pageable memory and the call that then waits for it, when the copy was '
    'called';
COMMENT ON COLUMN waits.call_start_ns IS 'When the call that waited began';
COMMENT ON COLUMN waits.end_ns IS 'When the call returned';
COMMENT ON COLUMN waits.wait_ns IS 'How long the host was blocked: the durations of the one or two calls';
COMMENT ON COLUMN waits.name IS 'The call that waited';
COMMENT ON COLUMN waits.is_copy IS 'Whether that is the copy itself';
COMMENT ON COLUMN waits.copy_kind IS
    'D2H if a device-to-host copy was waited for, even among others; else the kind of the last asynchronous copy of '
    'its thread that the call completed; NULL for none';
COMMENT ON COLUMN waits.copy_bytes IS 'Size of the copies of that kind that it completed';
COMMENT ON COLUMN waits.copy_end_ns IS 'When the last of them ended on the GPU';
COMMENT ON COLUMN waits.device_id IS
    'CUDA device waited for; NULL where the trace does not say or it is none in particular';
COMMENT ON COLUMN waits.correlation_id IS 'The call''s id: joins with `api_calls`, together with process_id';
