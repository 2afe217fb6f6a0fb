CREATE VIEW outer_api_calls AS
SELECT a.*
FROM api_calls AS a
ANTI JOIN facts.inner_calls AS i ON i.process_id = a.process_id AND i.thread_id = a.thread_id
    AND i.start_ns = a.start_ns
    AND i.end_ns = a.end_ns AND i.api = a.api AND i.correlation_id IS NOT DISTINCT FROM a.correlation_id;

COMMENT ON VIEW outer_api_calls IS
    'The rows of `api_calls` that are not inside another API call: a runtime call may contain its driver call, and '
    'their times must not be added.';
COMMENT ON COLUMN outer_api_calls.start_ns IS 'When the host entered the call';
COMMENT ON COLUMN outer_api_calls.end_ns IS 'When the call returned';
COMMENT ON COLUMN outer_api_calls.duration_ns IS 'end_ns - start_ns';
COMMENT ON COLUMN outer_api_calls.name IS 'The function, without its version suffix (_v7000, _ptsz)';
COMMENT ON COLUMN outer_api_calls.call_group IS
    'What it is for: launch, graph launch, sync, copy, memset, alloc, free, graph, event, module, other';
COMMENT ON COLUMN outer_api_calls.api IS 'runtime (cuda…), driver (cu…) or other';
COMMENT ON COLUMN outer_api_calls.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN outer_api_calls.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN outer_api_calls.correlation_id IS
    'Joins with what the call caused on the GPU, together with process_id';
COMMENT ON COLUMN outer_api_calls.return_value IS '0 is success; else CUDA''s error number';
COMMENT ON COLUMN outer_api_calls.callchain_id IS 'Backtrace of the call, when it was captured';
