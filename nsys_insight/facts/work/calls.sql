-- The CUDA calls in late gaps.
SELECT c.start_ns + l.shift_ns AS line_start, c.end_ns + l.shift_ns AS line_end
FROM facts.idle_calls AS c
JOIN (
    SELECT gpu_id, start_ns AS gap_ns, thread FROM facts.idle_time WHERE host = idle_host('late')
) AS t USING (gpu_id, gap_ns)
JOIN internal.work_tracks AS l USING (gpu_id, thread)
