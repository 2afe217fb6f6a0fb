-- The earliest time in the timeline, at most 0.
SELECT least((SELECT min(start_ns) FROM wall), (SELECT min(start_ns) FROM nvtx_ranges),
    (SELECT min(start_ns) FROM gpu_metrics), 0) AS first_ns
