-- What each operation adds to the busy time is the part of it after the latest end so far: these pieces do not overlap, and
-- adding them up takes one pass.
CREATE VIEW used_gpus AS
WITH pieces AS (
    SELECT gpu_id, greatest(start_ns, coalesce(reached_ns, start_ns)) AS start_ns, end_ns
    FROM gpu_reach
    WHERE reached_ns IS NULL OR end_ns > reached_ns
)
SELECT g.gpu_id, coalesce(sum(p.end_ns - p.start_ns), 0)::BIGINT AS busy_ns
FROM (SELECT DISTINCT gpu_id FROM gpu_work) AS g
LEFT JOIN in_scope('pieces') AS p USING (gpu_id)
GROUP BY g.gpu_id;

COMMENT ON VIEW used_gpus IS 'The GPUs in scope, and how long each was busy: the sum of `gpu_busy`.';
COMMENT ON COLUMN used_gpus.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN used_gpus.busy_ns IS 'How long it was busy within the wall, with whatever it was';
