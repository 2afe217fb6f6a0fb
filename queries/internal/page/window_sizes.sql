-- The number of operations and calls in each time window: events that start before its end, minus events that end
-- before its start. Windows without events have no row. Histograms count both between the edges of the windows. An
-- event before the first window or after the last one is in both counts of every window or in none, so it is skipped.
WITH windows AS (
    SELECT
        unnest($starts)::BIGINT AS from_ns, unnest($ends)::BIGINT AS to_ns,
        unnest(range(len($starts))) AS window_index
),
events AS (
    SELECT start_ns, greatest(start_ns, end_ns) AS end_ns FROM gpu_ops
    UNION ALL
    SELECT start_ns, greatest(start_ns, end_ns) FROM outer_api_calls
),
histograms AS MATERIALIZED (
    SELECT
        histogram(start_ns, list_transform(list_sort(list_distinct($ends::BIGINT[])), lambda x: x - 1)) AS start_counts,
        histogram(end_ns, list_sort(list_distinct($starts::BIGINT[]))) AS end_counts
    FROM events
    WHERE start_ns < list_max($ends) AND end_ns >= list_min($starts)
),
started_events AS (
    SELECT last_ns, sum(events) OVER (ORDER BY last_ns) AS events
    FROM (SELECT unnest(map_keys(start_counts)) AS last_ns, unnest(map_values(start_counts)) AS events FROM histograms)
),
finished_events AS (
    SELECT from_ns, sum(events) OVER (ORDER BY from_ns) AS events
    FROM (SELECT unnest(map_keys(end_counts)) AS from_ns, unnest(map_values(end_counts)) AS events FROM histograms)
)
SELECT w.window_index, (s.events - f.events)::BIGINT AS events
FROM windows AS w
JOIN started_events AS s ON s.last_ns = w.to_ns - 1
JOIN finished_events AS f USING (from_ns)
WHERE s.events > f.events
ORDER BY w.window_index
