-- How many operations and calls lie in each of several windows of time; no row of a window without any: those that
-- begin before its end, but those that end before it begins. Both are counted from one window's edge to the next. What
-- is before the first window or after the last one is in neither, or in both of all: it is left out.
WITH windows AS (
    SELECT unnest($starts)::BIGINT AS from_ns, unnest($ends)::BIGINT AS to_ns, unnest(range(len($starts))) AS place
),
events AS (
    SELECT start_ns, greatest(start_ns, end_ns) AS end_ns FROM gpu_ops
    UNION ALL
    SELECT start_ns, greatest(start_ns, end_ns) FROM outer_api_calls
),
counted AS MATERIALIZED (
    SELECT
        histogram(start_ns, list_transform(list_sort(list_distinct($ends::BIGINT[])), x -> x - 1)) AS begun,
        histogram(end_ns, list_sort(list_distinct($starts::BIGINT[]))) AS ended
    FROM events
    WHERE start_ns < list_max($ends) AND end_ns >= list_min($starts)
),
begun AS (
    SELECT last_ns, sum(events) OVER (ORDER BY last_ns) AS events
    FROM (SELECT unnest(map_keys(begun)) AS last_ns, unnest(map_values(begun)) AS events FROM counted)
),
ended AS (
    SELECT from_ns, sum(events) OVER (ORDER BY from_ns) AS events
    FROM (SELECT unnest(map_keys(ended)) AS from_ns, unnest(map_values(ended)) AS events FROM counted)
)
SELECT w.place, (b.events - e.events)::BIGINT AS events
FROM windows AS w
JOIN begun AS b ON b.last_ns = w.to_ns - 1
JOIN ended AS e USING (from_ns)
WHERE b.events > e.events
ORDER BY w.place
