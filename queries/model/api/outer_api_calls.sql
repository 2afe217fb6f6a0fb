/*
description = """The rows of `api_calls` that are not inside another API call: a runtime call may contain its driver
    call, and their times must not be added."""
[columns]
start_ns = "When the host entered the call"
end_ns = "When the call returned"
duration_ns = "end_ns - start_ns"
name = "The function, without its version suffix (_v7000, _ptsz)"
call_group = "What it is for: launch, graph launch, sync, copy, memset, alloc, free, graph, event, module, other"
api = "runtime (cuda…), driver (cu…) or other"
process_id = "Operating system's process id"
thread_id = "Operating system's thread id"
correlation_id = "Joins with what the call caused on the GPU, together with process_id"
return_value = "0 is success; else CUDA's error number"
callchain_id = "Backtrace of the call, when it was captured"
*/
SELECT a.*
FROM api_calls AS a
ANTI JOIN _inner_calls AS i ON i.process_id = a.process_id AND i.thread_id = a.thread_id
    AND i.start_ns = a.start_ns
    AND i.end_ns = a.end_ns AND i.api = a.api AND i.correlation_id IS NOT DISTINCT FROM a.correlation_id;
