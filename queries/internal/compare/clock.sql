-- The mean clock of the SMs during the steady steps, as sampled; of the entire scope if there are no such steps.
WITH steady AS (
    SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM steps WHERE phase = 'steady'
)
SELECT avg(s.clock_hz) AS clock_hz
FROM (FROM gpu_samples SEMI JOIN used_gpus USING (gpu_id)) AS s
CROSS JOIN steady AS t
WHERE t.start_ns IS NULL OR (s.start_ns >= t.start_ns AND s.start_ns < t.end_ns)
