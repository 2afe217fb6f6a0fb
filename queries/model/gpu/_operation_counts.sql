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
    'kernel' AS kind, k.process_id, k.device_id, k.stream_id, k.name_id, NULL AS label, count(*) AS operations,
    count(c.call) AS called,
    sum(k.duration_ns)::BIGINT AS gpu_ns
FROM kernel_events AS k
LEFT JOIN (
    SELECT call_of(correlation_id, process_id) AS call
    FROM api_calls
    WHERE call_group IN ('launch', 'graph launch')
) AS c ON c.call = call_of(k.correlation_id, k.process_id)
GROUP BY ALL
UNION ALL
SELECT kind, process_id, device_id, stream_id, name_id, label, count(*), 0, sum(duration_ns)::BIGINT
FROM gpu_ops
WHERE kind <> 'kernel'
GROUP BY ALL;
