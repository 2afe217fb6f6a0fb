-- The stream that computes for longest, and how many operations it ran. Communication kernels count only if the stream
-- runs nothing else: the rank that arrives first at a collective waits there longest.
SELECT process_id, device_id, stream_id, sum(operations)::BIGINT AS ops
FROM _operation_counts
GROUP BY ALL
ORDER BY
    coalesce(
        sum(gpu_ns) FILTER (
            name_id IS NULL OR name_id NOT IN (SELECT name_id FROM kernel_names WHERE family = 'comm')
        ),
        0
    ) DESC,
    sum(gpu_ns) DESC, ops DESC, process_id, device_id, stream_id
LIMIT 1
