-- Exports of 2022 repeat a call as a 'CUDA backtrace' row (event class 67) around it, with the same correlation id:
-- those rows are left out.
CREATE VIEW api_calls AS
SELECT
    r.start AS start_ns,
    r."end" AS end_ns,
    duration(r.start, r."end") AS duration_ns,
    n.name,
    n.call_group,
    CASE r.eventClass WHEN 0 THEN 'runtime' WHEN 1 THEN 'driver' ELSE 'other' END AS api,
    pid_of(r.globalTid) AS process_id,
    tid_of(r.globalTid) AS thread_id,
    r.correlationId AS correlation_id,
    r.returnValue AS return_value,
    r.callchainId AS callchain_id
FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME AS r
LEFT JOIN _api_names AS n ON n.name_id = r.nameId
WHERE r.eventClass IS DISTINCT FROM 67;

COMMENT ON VIEW api_calls IS
    'One row per CUDA API call of the host, runtime or driver. nsys leaves out calls it finds unimportant unless '
    '--cuda-trace-all-apis: counts are lower bounds.';
COMMENT ON COLUMN api_calls.start_ns IS 'When the host entered the call';
COMMENT ON COLUMN api_calls.end_ns IS 'When the call returned';
COMMENT ON COLUMN api_calls.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN api_calls.name IS 'The function, without its version suffix (_v7000, _ptsz)';
COMMENT ON COLUMN api_calls.call_group IS
    'What it is for: launch, graph launch, sync, copy, memset, alloc, free, graph, event, module, other';
COMMENT ON COLUMN api_calls.api IS 'runtime (cuda…), driver (cu…) or other';
COMMENT ON COLUMN api_calls.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN api_calls.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN api_calls.correlation_id IS
    'Joins with what the call caused on the GPU, together with process_id; NULL for a call inside another one of '
    'the same id, which is the one to join';
COMMENT ON COLUMN api_calls.return_value IS '0 is success; else CUDA''s error number';
COMMENT ON COLUMN api_calls.callchain_id IS 'Backtrace of the call, when it was captured';
