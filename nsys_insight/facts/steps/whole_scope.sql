-- If no step is steady, the counts are those of the entire scope, without a step number.
INSERT INTO facts.step_calls BY NAME
SELECT NULL AS step, process_id, thread_id, call_group, count(*) AS calls, sum(duration_ns)::BIGINT AS time_ns
FROM outer_api_calls
GROUP BY ALL;

INSERT INTO facts.step_launches BY NAME
WITH first_kernels AS (
    SELECT api_start_ns AS call_ns, api_end_ns AS returned_ns, start_ns, false AS is_graph
    FROM launches WHERE call_group = 'launch'
    UNION ALL
    SELECT min(api_start_ns), min(api_end_ns), min(start_ns), true
    FROM launches WHERE call_group = 'graph launch' GROUP BY process_id, correlation_id
    UNION ALL
    SELECT a.start_ns, a.end_ns, g.start_ns, true
    FROM graph_launches AS g
    JOIN api_calls AS a ON a.process_id = g.process_id AND a.correlation_id = g.correlation_id
        AND a.call_group = 'graph launch'
)
SELECT
    NULL AS step,
    count(*) AS launch_calls,
    count(*) FILTER (is_graph) AS graph_launches,
    sum(start_ns - call_ns)::BIGINT AS launch_queue_ns,
    coalesce(sum(start_ns - returned_ns) FILTER (start_ns > returned_ns), 0)::BIGINT AS queue_ns,
    count(*) FILTER (start_ns >= returned_ns + 10000) AS ahead_calls
FROM first_kernels
WHERE start_ns >= call_ns
HAVING count(*) > 0
