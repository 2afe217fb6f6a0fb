-- The processes that ran something on a GPU, with their share of the GPU time and the GPUs that they used.
WITH work AS (
    SELECT process_id, gpu_of(process_id, device_id) AS gpu_id, sum(greatest(duration_ns, 0)) AS gpu_ns
    FROM gpu_ops
    GROUP BY ALL
),
names AS (
    SELECT process_id, min(name) AS name FROM processes GROUP BY process_id
)
SELECT
    w.process_id, any_value(parse_filename(n.name)) AS command,
    string_agg(w.gpu_id, ', ' ORDER BY w.gpu_id) AS gpus,
    100 * sum(w.gpu_ns) / nullif(sum(sum(w.gpu_ns)) OVER (), 0) AS gpu_pct
FROM work AS w
LEFT JOIN names AS n USING (process_id)
GROUP BY w.process_id
ORDER BY gpu_pct DESC, w.process_id
