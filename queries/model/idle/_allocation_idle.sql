CREATE VIEW _allocation_idle AS
SELECT
    process_id, thread_id, call_start_ns AS start_ns,
    sum(c.idle_ns)::BIGINT AS idle_ns, coalesce(sum(c.idle_ns) FILTER (g.step IS NOT NULL), 0)::BIGINT AS steady_ns
FROM idle_charges AS c
LEFT JOIN (FROM step_gpus WHERE phase = 'steady') AS g ON g.step = c.step AND g.gpu_id = c.gpu_id
WHERE c.charge = 'allocation'
GROUP BY ALL;

COMMENT ON VIEW _allocation_idle IS 'The GPU idle time that is attributed to each allocation or free.';
COMMENT ON COLUMN _allocation_idle.process_id IS 'Process of the call';
COMMENT ON COLUMN _allocation_idle.thread_id IS 'Its thread';
COMMENT ON COLUMN _allocation_idle.start_ns IS 'When the call began';
COMMENT ON COLUMN _allocation_idle.idle_ns IS 'GPU idle time attributed to it';
COMMENT ON COLUMN _allocation_idle.steady_ns IS 'The part of it in steady steps';
