-- The mean length of the typical steps: wall time, and time on the host.
SELECT avg(end_ns - start_ns) AS wall_ns, avg(host_end_ns - host_start_ns) AS host_ns, count(*) AS step_count
FROM internal.fusion_steps
WHERE step IN (SELECT unnest(steps) FROM internal.fusion_sequences)
