-- What the operations waited for on the GPU: `facts.idle_time` has these waits.
INSERT INTO facts.listed_waits BY NAME
SELECT
    g.gap_id, i.host::VARCHAR AS host,
    sum(least(i.end_ns, g.end_ns) - greatest(i.start_ns, g.start_ns))::BIGINT AS time_ns
FROM facts.listed_gaps AS g
JOIN facts.idle_time AS i ON i.gpu_id = g.gpu_id AND i.start_ns < g.end_ns AND i.end_ns > g.start_ns
WHERE i.host IN (idle_host('stream wait'), idle_host('staged copy'))
GROUP BY ALL;
