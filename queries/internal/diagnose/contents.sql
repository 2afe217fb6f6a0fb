-- What a trace without GPU work shows: one row per kind of event, each with its own columns: how many there are, and
-- the three names with the most time, or the means of sampled metrics. Rates of clocks are not listed.
WITH named_times AS (
    SELECT 'range' AS kind, name, duration_ns FROM nvtx_ranges WHERE end_ns IS NOT NULL
    UNION ALL
    SELECT 'call', name, duration_ns FROM outer_api_calls
    UNION ALL
    SELECT 'os', name, duration_ns FROM os_calls
),
-- As in the report nvtx, ranges whose names differ only in their numbers count as one.
range_names AS (
    SELECT name, fold(name) AS folded FROM (SELECT DISTINCT name FROM named_times WHERE kind = 'range')
),
totals AS (
    SELECT
        t.kind, coalesce(n.folded, t.name, '(no name)') AS name, count(*) AS times,
        sum(t.duration_ns)::DOUBLE AS time_ns
    FROM named_times AS t LEFT JOIN range_names AS n ON t.kind = 'range' AND n.name = t.name
    GROUP BY ALL
),
longest AS (
    SELECT
        kind, sum(times)::BIGINT AS events,
        list({'name': name, 'times': times, 'time_ns': time_ns} ORDER BY time_ns DESC, name)[:3] AS names
    FROM totals
    GROUP BY kind
),
metrics AS (
    SELECT name, avg(value) AS mean_pct FROM gpu_metrics
    WHERE regexp_matches(name, 'Throughput %|Active') AND value BETWEEN 0 AND 100
    GROUP BY name
)
SELECT events AS ranges, names AS longest_ranges FROM longest WHERE kind = 'range'
UNION ALL BY NAME
SELECT events AS calls, names AS longest_calls FROM longest WHERE kind = 'call'
UNION ALL BY NAME
SELECT events AS os_calls, names AS longest_os_calls FROM longest WHERE kind = 'os'
UNION ALL BY NAME
SELECT
    (SELECT count(*) FROM gpu_metrics) AS metric_samples,
    list({'name': regexp_replace(name, ' \[.*', ''), 'mean_pct': mean_pct} ORDER BY mean_pct DESC, name)[:3] AS rates
FROM metrics
HAVING count(*) > 0
