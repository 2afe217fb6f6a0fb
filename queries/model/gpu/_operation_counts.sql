/*
description = "How many operations there are on each stream by kind and name, and how long they took."
stored = true
[columns]
kind = "kernel, copy, memset or graph, as in `gpu_ops`"
device_id = "CUDA device number"
stream_id = "CUDA stream id"
name_id = "A kernel's name, in `strings` and `kernel_names`"
label = "What it is, if not a kernel, as in `gpu_ops`"
operations = "Operations"
called = "Kernels among them whose launch call is in the trace"
gpu_ns = "Sum of their durations"
*/
SELECT
    o.kind, o.process_id, o.device_id, o.stream_id, o.name_id, o.label, count(*) AS operations,
    count(c.call) AS called, sum(o.duration_ns)::BIGINT AS gpu_ns
FROM gpu_ops AS o
LEFT JOIN (
    SELECT call_of(correlation_id, process_id) AS call
    FROM api_calls
    WHERE call_group IN ('launch', 'graph launch')
) AS c ON c.call = CASE o.kind WHEN 'kernel' THEN call_of(o.correlation_id, o.process_id) END
GROUP BY ALL;
