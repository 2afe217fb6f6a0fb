/*
description = """The rows of `api_calls` that are not inside another API call: a runtime call may contain its driver
    call, and their times must not be added."""
columns_of = "api_calls"
[columns]
duration_ns = "end_ns - start_ns"
correlation_id = "Joins with what the call caused on the GPU, together with process_id"
*/
SELECT a.*
FROM api_calls AS a
ANTI JOIN _inner_calls AS i ON i.process_id = a.process_id AND i.thread_id = a.thread_id
    AND i.start_ns = a.start_ns
    AND i.end_ns = a.end_ns AND i.api = a.api AND i.correlation_id IS NOT DISTINCT FROM a.correlation_id;
