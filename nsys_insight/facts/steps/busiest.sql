-- The stream that computes for longest, and how many operations it ran. Communication kernels count only if the stream
-- runs nothing else: the rank that arrives first at a collective waits there longest.
SELECT process_id, device_id, stream_id, count(*) AS ops
FROM gpu_ops
GROUP BY ALL
ORDER BY
    coalesce(
        sum(greatest(duration_ns, 0)) FILTER (
            name_id IS NULL OR name_id NOT IN (SELECT name_id FROM kernel_names WHERE family = 'comm')
        ),
        0
    ) DESC,
    sum(greatest(duration_ns, 0)) DESC, count(*) DESC, process_id, device_id, stream_id
LIMIT 1
