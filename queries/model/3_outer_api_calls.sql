-- A runtime call may contain its driver call. Only driver calls have to be looked at, which are the few: each is inside a
-- runtime call if the last one that began before it on its thread ends after it.
CREATE VIEW outer_api_calls AS
SELECT * FROM api_calls WHERE api <> 'driver'
UNION ALL
SELECT d.*
FROM (SELECT * FROM api_calls WHERE api = 'driver') AS d
ASOF LEFT JOIN (SELECT process_id, thread_id, start_ns, end_ns FROM api_calls WHERE api = 'runtime') AS r
    ON r.process_id = d.process_id AND r.thread_id = d.thread_id AND r.start_ns <= d.start_ns
WHERE r.end_ns IS NULL OR r.end_ns < d.end_ns;

COMMENT ON VIEW outer_api_calls IS 'The rows of `api_calls` that are not inside another API call: a runtime call may contain its driver call, and their times must not be added.';
