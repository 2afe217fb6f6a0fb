-- The kernels of a typical step in the order in which they ran: the first steady step with the median number of
-- kernels.
WITH typical_step AS (
    SELECT process_id, host_start_ns, host_end_ns
    FROM steps
    WHERE phase = 'steady' AND kernels = (SELECT quantile_disc(kernels, 0.5) FROM steps WHERE phase = 'steady')
    ORDER BY step
    LIMIT 1
)
SELECT s.name
FROM launches AS k
JOIN typical_step AS t ON t.process_id = k.process_id
    AND coalesce(k.api_start_ns, k.start_ns) >= t.host_start_ns AND coalesce(k.api_start_ns, k.start_ns) < t.host_end_ns
LEFT JOIN strings AS s ON s.name_id = k.name_id
ORDER BY k.start_ns, s.name
