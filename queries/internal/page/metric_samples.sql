-- Samples of the most telling metrics of GPUs in time windows. Each lasts until the next one of its metric.
WITH windows AS (
    SELECT unnest($starts)::BIGINT AS from_ns, unnest($ends)::BIGINT AS to_ns
),
samples AS (
    SELECT
        gpu_id, split_part(name, ' [', 1) AS metric, start_ns, value,
        lead(start_ns) OVER (PARTITION BY gpu_id, name ORDER BY start_ns) AS end_ns
    FROM gpu_metrics
    WHERE list_contains($metrics, split_part(name, ' [', 1)) AND contains(name, '%')
)
SELECT s.gpu_id, s.metric, s.start_ns, s.end_ns, s.value
FROM samples AS s
JOIN windows AS w ON s.start_ns < w.to_ns AND s.end_ns > w.from_ns
ORDER BY s.start_ns, s.gpu_id, s.metric
LIMIT $max_rows + 1
