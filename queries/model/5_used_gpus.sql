-- How long a GPU was busy up to an instant follows from the last interval that began before it; the difference between
-- the ends of the wall's intervals is what they hold. (--nvtx has as many of those as there are ranges: to look for each
-- in all of `gpu_busy` would not end.) The last instant of all gives the whole.
CREATE VIEW used_gpus AS
WITH busy AS (
    SELECT
        gpu_id, start_ns, end_ns,
        sum(duration_ns) OVER (PARTITION BY gpu_id ORDER BY start_ns ROWS UNBOUNDED PRECEDING) AS busy_ns
    FROM gpu_busy
),
gpus_used AS (
    SELECT DISTINCT coalesce(d.gpu_id, o.device_id) AS gpu_id
    FROM (SELECT DISTINCT process_id, device_id FROM gpu_ops) AS o
    LEFT JOIN devices AS d ON d.process_id = o.process_id AND d.device_id = o.device_id
),
instants AS (
    SELECT unnest([start_ns, end_ns]) AS at_ns, unnest([-1, 1]) AS sign FROM wall
    UNION ALL
    SELECT 9223372036854775807, 0
),
reached AS (
    SELECT i.gpu_id, i.sign, coalesce(b.busy_ns + least(b.end_ns, i.at_ns) - b.end_ns, 0) AS busy_ns
    FROM (FROM gpus_used CROSS JOIN instants) AS i
    ASOF LEFT JOIN busy AS b ON b.gpu_id = i.gpu_id AND b.start_ns <= i.at_ns
)
SELECT
    gpu_id,
    sum(sign * busy_ns)::BIGINT AS busy_ns,
    (sum(busy_ns) FILTER (WHERE sign = 0) - sum(sign * busy_ns))::BIGINT AS outside_ns
FROM reached
GROUP BY gpu_id;

COMMENT ON VIEW used_gpus IS 'The GPUs that did something in scope, and for how long: the sum of `gpu_busy`.';
COMMENT ON COLUMN used_gpus.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN used_gpus.busy_ns IS 'How long it was busy, within the wall';
COMMENT ON COLUMN used_gpus.outside_ns IS 'How long it was busy outside the wall: with --nvtx or --to, work may run after the time in which it was selected';
