/* parameters = ["calls"] */
-- How long the GPUs were idle during `calls` (code, place, start_ns, end_ns), added up by code and place. Calls and
-- gaps are joined by time bucket: there are few calls and millions of gaps.
WITH time_span AS MATERIALIZED (
    SELECT
        greatest(
            16384,
            (max(end_ns) - min(start_ns)) // greatest(200000, 16 * count(*)),
            sum(end_ns - start_ns)::BIGINT // (200000 + 16 * count(*))
        ) AS bucket_ns,
        min(start_ns) AS from_ns, max(end_ns) AS until_ns
    FROM query_table(calls) HAVING count(*) > 0
),
bucketed_calls AS MATERIALIZED (
    SELECT
        code, place, start_ns, end_ns, start_ns // bucket_ns AS first_bucket,
        unnest(range(start_ns // bucket_ns, end_ns // bucket_ns + 1)) AS bucket
    FROM query_table(calls) CROSS JOIN time_span
),
-- DuckDB takes the rows of a list to be few; otherwise it would expect many rows here, and hash all gaps.
call_buckets AS MATERIALIZED (
    SELECT unnest(list(DISTINCT bucket)) AS bucket FROM bucketed_calls
),
gpus AS MATERIALIZED (
    SELECT unnest(list(DISTINCT gpu_id)) AS gpu_id FROM step_budget
),
idle_gaps AS (
    SELECT
        start_ns, end_ns, greatest(start_ns, from_ns) // bucket_ns AS first_bucket,
        least(end_ns, until_ns) // bucket_ns AS last_bucket
    FROM gpu_gaps CROSS JOIN time_span
    WHERE gpu_id IN (FROM gpus) AND start_ns < until_ns AND end_ns > from_ns
),
nearby_gaps AS MATERIALIZED (
    FROM idle_gaps
    WHERE first_bucket IN (FROM call_buckets) OR last_bucket IN (FROM call_buckets) OR last_bucket > first_bucket + 1
)
SELECT n.code, n.place, sum(least(g.end_ns, n.end_ns) - greatest(g.start_ns, n.start_ns))::BIGINT AS idle_ns
FROM (SELECT *, unnest(range(first_bucket, last_bucket + 1)) AS bucket FROM nearby_gaps) AS g
JOIN bucketed_calls AS n USING (bucket)
WHERE bucket = greatest(g.first_bucket, n.first_bucket) AND g.start_ns < n.end_ns AND g.end_ns > n.start_ns
GROUP BY n.code, n.place;
