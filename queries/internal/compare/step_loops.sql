-- The iterations of the loops inside a step, by when the host begins them.
SELECT i.loop, l.gpu_share, l.depth, i.host_start_ns, i.host_end_ns
FROM loop_iterations AS i
JOIN loops AS l USING (loop)
JOIN steps AS s ON s.step = $step AND s.phase = 'steady' AND s.process_id = l.process_id
WHERE i.host_start_ns >= s.host_start_ns AND i.host_start_ns < s.host_end_ns
ORDER BY i.loop, i.host_start_ns
