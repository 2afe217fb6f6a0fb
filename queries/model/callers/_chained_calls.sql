-- nsys 2022 has the chain of a call in a separate row (event class 67) with the call's id. A backtrace that Python
-- itself gave takes precedence.
CREATE VIEW _chained_calls AS
SELECT
    pid_of(c.globalTid) AS process_id, c.correlationId AS correlation_id,
    coalesce(p.chain_id, c.callchainId) AS chain_id,
    c.eventClass = 67 AS is_apart
FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME AS c
LEFT JOIN facts.python_chains AS p ON p.start_ns = c.start AND p.thread_id = tid_of(c.globalTid)
    AND p.process_id = pid_of(c.globalTid)
WHERE coalesce(p.chain_id, c.callchainId) IS NOT NULL AND c.correlationId IS NOT NULL;

COMMENT ON VIEW _chained_calls IS 'The CUDA calls that have a call chain; a call may have one in a separate row.';
COMMENT ON COLUMN _chained_calls.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _chained_calls.correlation_id IS 'The call''s id';
COMMENT ON COLUMN _chained_calls.chain_id IS 'Id of the chain; below zero for chains from Python';
COMMENT ON COLUMN _chained_calls.is_apart IS 'Whether this row is separate from the call''s';
