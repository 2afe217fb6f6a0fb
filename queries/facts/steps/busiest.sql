-- The stream that is busy for longest, and how many operations it ran.
SELECT process_id, device_id, stream_id, count(*) AS ops
FROM gpu_ops
GROUP BY ALL
ORDER BY sum(greatest(duration_ns, 0)) DESC, count(*) DESC, process_id, device_id, stream_id
LIMIT 1
