-- The kernels of a graph share its launch call: the first one is what the call was waited for with.
CREATE VIEW step_launches AS
WITH steady AS (
    FROM steps WHERE phase = 'steady'
),
first_kernels AS (
    SELECT process_id, correlation_id, api_start_ns, api_end_ns, start_ns, false AS is_graph
    FROM launches WHERE call_group = 'launch'
    UNION ALL
    SELECT process_id, correlation_id, min(api_start_ns), min(api_end_ns), min(start_ns), true
    FROM launches WHERE call_group = 'graph launch' GROUP BY ALL
    UNION ALL
    SELECT g.process_id, g.correlation_id, a.start_ns, a.end_ns, g.start_ns, true
    FROM graph_launches AS g
    JOIN api_calls AS a ON a.process_id = g.process_id AND a.correlation_id = g.correlation_id AND a.call_group = 'graph launch'
),
owned AS (
    SELECT f.*, s.step, s.host_end_ns
    FROM first_kernels AS f
    ASOF LEFT JOIN steady AS s ON s.process_id = f.process_id AND s.host_start_ns <= f.api_start_ns
)
SELECT
    step,
    count(*) AS launch_calls,
    count(*) FILTER (is_graph) AS graph_launches,
    sum(start_ns - api_start_ns)::BIGINT AS launch_queue_ns,
    coalesce(sum(start_ns - api_end_ns) FILTER (start_ns > api_end_ns), 0)::BIGINT AS queue_ns
FROM owned
WHERE start_ns >= api_start_ns AND (api_start_ns < host_end_ns OR NOT EXISTS (FROM steady))
GROUP BY step;

COMMENT ON VIEW step_launches IS 'TKLQT, the total launch and queuing time of the kernels of each steady step (Vellaisamy et al., arXiv 2504.11750): from the begin of each launch call to the start of its kernel on the GPU. Of the whole scope where no steps were found. A graph counts once, to its first kernel; kernels without a launch call do not count.';
COMMENT ON COLUMN step_launches.step IS 'Number of the step; NULL for the whole scope';
COMMENT ON COLUMN step_launches.launch_calls IS 'Launch calls whose kernel or graph is in the trace, graph launches among them';
COMMENT ON COLUMN step_launches.graph_launches IS 'Launches of CUDA graphs';
COMMENT ON COLUMN step_launches.launch_queue_ns IS 'Sum of the times from the begin of the call to the start on the GPU: TKLQT';
COMMENT ON COLUMN step_launches.queue_ns IS 'Of it, after the call had returned';
