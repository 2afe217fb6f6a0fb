CREATE VIEW token_times AS
SELECT
    request, number, at_ns,
    at_ns - lag(at_ns) OVER (PARTITION BY request ORDER BY number) AS since_last_ns
FROM (SELECT request, unnest(token_ns) AS at_ns, generate_subscripts(token_ns, 1) - 1 AS number FROM facts.requests);

COMMENT ON VIEW token_times IS
    'One row per token of a request: when the step that makes it was done, as in `phase_steps`.';
COMMENT ON COLUMN token_times.request IS 'The request, as in `requests`';
COMMENT ON COLUMN token_times.number IS 'The token''s number in its request, from 0, of those in the trace';
COMMENT ON COLUMN token_times.at_ns IS 'When it was done';
COMMENT ON COLUMN token_times.since_last_ns IS
    'Inter-token latency: the time since the previous token; NULL for the first';
