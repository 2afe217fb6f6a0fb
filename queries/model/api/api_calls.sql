/*
description = """One row per CUDA API call of the host, runtime or driver. nsys leaves out calls it finds unimportant
    unless --cuda-trace-all-apis: counts are lower bounds."""
[columns]
start_ns = "When the host entered the call"
end_ns = "When the call returned"
name = "The function, without its version suffix (_v7000, _ptsz)"
call_group = "What it is for: launch, graph launch, sync, copy, memset, alloc, free, graph, event, module, other"
api = "runtime (cuda…), driver (cu…) or other"
correlation_id = """Joins with what the call caused on the GPU, together with process_id; NULL for a call inside another
    one of the same id, which is the one to join"""
return_value = "0 is success; else CUDA's error number"
callchain_id = "Backtrace of the call, when it was captured"
*/
-- Exports of 2022 repeat a call as a 'CUDA backtrace' row (event class 67) around it, with the same correlation id:
-- those rows are left out.
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
