-- How long the typical step lasts: its wall, and its time on the host.
SELECT avg(end_ns - start_ns), avg(host_end_ns - host_start_ns), count(*)
FROM fusion_steps
WHERE step IN (SELECT unnest(steps) FROM fusion_sequences)
