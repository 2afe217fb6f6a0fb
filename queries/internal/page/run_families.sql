-- The family with the most GPU time, and the number of operations, of those that start in each time bucket.
WITH families AS (
    SELECT
        (o.start_ns - $from_ns) // $bucket_ns AS bucket, coalesce(n.family, o.kind) AS family,
        sum(o.duration_ns)::BIGINT AS total_ns, count(*) AS operations
    FROM gpu_ops AS o
    LEFT JOIN kernel_names AS n USING (name_id)
    WHERE o.start_ns >= $from_ns
    GROUP BY ALL
)
SELECT bucket, arg_max(family, (total_ns, family)) AS family, sum(operations)::BIGINT AS operations
FROM families
GROUP BY bucket
ORDER BY bucket
