/*
description = "The processes that called CUDA or ran something on a GPU."
[columns]
calls = "CUDA API calls of the process"
threads = "Threads that made them"
kernels = "Kernels of the process"
streams = "Streams with operations"
gpu_ns = "Sum of the durations of its operations"
*/
SELECT
    process_id, coalesce(calls, 0)::BIGINT AS calls, coalesce(threads, 0) AS threads,
    coalesce(kernels, 0)::BIGINT AS kernels, coalesce(streams, 0) AS streams, coalesce(gpu_ns, 0) AS gpu_ns
FROM (
    SELECT process_id, sum(calls) AS calls, count(DISTINCT thread_id) AS threads FROM _call_counts GROUP BY process_id
)
FULL JOIN (
    SELECT
        process_id, sum(operations) FILTER (WHERE kind = 'kernel') AS kernels,
        count(DISTINCT (device_id, stream_id)) AS streams, sum(gpu_ns) AS gpu_ns
    FROM _operation_counts
    GROUP BY process_id
) USING (process_id);
