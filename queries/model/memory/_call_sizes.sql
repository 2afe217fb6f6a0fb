CREATE VIEW _call_sizes AS
SELECT process_id, correlation_id, sum(size_bytes)::BIGINT AS size_bytes
FROM memory_events
GROUP BY ALL;

COMMENT ON VIEW _call_sizes IS 'How much memory each call allocated or freed, where nsys recorded it.';
COMMENT ON COLUMN _call_sizes.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _call_sizes.correlation_id IS 'Joins with `api_calls`, together with process_id';
COMMENT ON COLUMN _call_sizes.size_bytes IS 'Bytes allocated or freed';
