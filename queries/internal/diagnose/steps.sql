-- How the steps were found, and how much of the trace's wall time they cover. One row, also without steps.
SELECT
    coalesce(m.steady_count, 0)::BIGINT AS steady_count,
    m.method, m.pattern, m.confidence, m.reason, m.doubt,
    coalesce(m.tokens_per_step, 1)::DOUBLE AS tokens_per_step,
    s.wall_ns AS steps_ns,
    s.median_ns / coalesce(m.tokens_per_step, 1) AS median_ns,
    w.wall_ns,
    q.ahead_pct,
    (SELECT whole_pct FROM _graph_tracing WHERE wholes > 0) AS graph_pct,
    -- As in the rule slow-launches: most of the idle time of late launches is after the calls, 100 µs for each call.
    (
        SELECT
            2 * sum(time_ns) FILTER (host = 'launch latency') > sum(time_ns)
            AND sum(time_ns) FILTER (host = 'launch latency') >= 100000 * q.launch_calls
        FROM step_budget
        WHERE part = 'launch'
    ) AS starts_late,
    {'range_name': f.range_name, 'step_loop': f.step_loop, 'is_count': f.is_count, 'doubt': m.doubt,
        'is_once': f.is_once, 'interruptions': f.interruptions, 'interruption_ns': f.interruption_ns,
        'operations': f.operations,
        'operation': f.operation, 'shortest_ns': f.shortest_ns, 'longest_ns': f.longest_ns,
        'tenth': f.tenth, 'first_ns': f.first_ns, 'last_ns': f.last_ns} AS source,
    (SELECT string_agg(gpu_id::VARCHAR, ', ' ORDER BY gpu_id) FROM used_gpus) AS gpus
FROM (SELECT sum(duration_ns)::BIGINT AS wall_ns FROM wall) AS w
-- A step's NVTX range may begin before the first CUDA event and end after the last, so it is clipped to the wall time.
-- Steps of several threads or streams overlap.
CROSS JOIN (
    SELECT
        sum(greatest(0, least(s.end_ns, w.end_ns) - greatest(s.start_ns, w.start_ns, s.latest_ns)))::BIGINT AS wall_ns,
        median(s.duration_ns) AS median_ns
    FROM (
        SELECT
            start_ns, end_ns, duration_ns,
            max(end_ns) OVER (ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest_ns
        FROM steps WHERE phase = 'steady'
    ) AS s, (SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM wall) AS w
) AS s
LEFT JOIN step_method AS m ON true
LEFT JOIN _step_source AS f ON true
-- The share of the launch calls that were made ahead. A mean time would be that of one late operation. Fewer than 5
-- calls have no queue.
LEFT JOIN (
    SELECT 100.0 * sum(ahead_calls) / sum(launch_calls) AS ahead_pct, sum(launch_calls) AS launch_calls
    FROM step_launches
    HAVING sum(launch_calls) >= 5
) AS q ON true
