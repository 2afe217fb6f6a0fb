-- Busy share of the GPUs in time buckets of equal length: a mean over the GPUs in use. Time outside gaps is busy. No
-- rows if the wall time consists of several separate intervals.
WITH run AS MATERIALIZED (
    SELECT
        min(start_ns) AS from_ns,
        greatest(1, (max(end_ns) - min(start_ns) + $bucket_count - 1) // $bucket_count) AS bucket_ns
    FROM wall
    HAVING count(*) = 1
),
buckets AS (
    SELECT g.gpu_id, p.bucket
    FROM (SELECT DISTINCT gpu_id FROM used_gpus) AS g
    CROSS JOIN (SELECT unnest(range($bucket_count))::BIGINT AS bucket) AS p
),
gaps AS (
    SELECT i.gpu_id, r.bucket_ns, greatest(i.start_ns - r.from_ns, 0) AS first_ns,
        least(i.end_ns - r.from_ns, $bucket_count * r.bucket_ns) AS end_ns
    FROM _idle_time AS i
    CROSS JOIN run AS r
    WHERE i.end_ns > r.from_ns
),
-- The part of a gap in each bucket.
gap_buckets AS (
    SELECT *, first_ns // bucket_ns AS bucket FROM gaps WHERE end_ns > first_ns
    UNION ALL
    SELECT *, unnest(range(first_ns // bucket_ns + 1, (end_ns - 1) // bucket_ns + 1)) FROM gaps
    WHERE (end_ns - 1) // bucket_ns > first_ns // bucket_ns
),
idle AS (
    SELECT
        gpu_id, bucket,
        sum(least(end_ns, (bucket + 1) * bucket_ns) - greatest(first_ns, bucket * bucket_ns)) AS idle_ns
    FROM gap_buckets
    GROUP BY gpu_id, bucket
)
SELECT
    p.bucket, any_value(r.from_ns + p.bucket * r.bucket_ns) AS start_ns,
    any_value(r.from_ns + (p.bucket + 1) * r.bucket_ns) AS end_ns,
    avg(100.0 - 100.0 * coalesce(i.idle_ns, 0) / r.bucket_ns) AS busy_pct
FROM buckets AS p
CROSS JOIN run AS r
LEFT JOIN idle AS i USING (gpu_id, bucket)
GROUP BY p.bucket
ORDER BY p.bucket
