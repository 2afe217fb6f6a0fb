-- GPU work of the ranks in a step. Times start when the last collective before the step ended on each rank.
SELECT r.rank, o.start_ns - s.trace_start_ns AS start_ns, o.end_ns - s.trace_start_ns AS end_ns
FROM rank_steps AS s
JOIN ranks AS r USING (rank)
JOIN gpu_ops AS o ON o.process_id = r.process_id AND o.device_id = r.device_id
WHERE s.step = $step AND o.end_ns > s.trace_start_ns AND o.start_ns < s.trace_start_ns + s.wall_ns
ORDER BY r.rank, o.start_ns, o.end_ns
