-- What --nvtx or --from and --to select may run on after the selected time; so all of time is laid out, inside and outside
-- of the wall, and each busy interval is found again with all its parts.
CREATE VIEW used_gpus AS
WITH times AS (
    SELECT start_ns, end_ns, true AS is_wall FROM wall
    UNION ALL
    SELECT end_ns, coalesce(lead(start_ns) OVER (ORDER BY start_ns), 9223372036854775807), false FROM wall
    UNION ALL
    SELECT -9223372036854775807, coalesce(min(start_ns), 9223372036854775807), false FROM wall
),
parts AS (
    SELECT
        b.gpu_id,
        t.is_wall,
        greatest(0, least(b.end_ns, t.end_ns) - greatest(b.start_ns, t.start_ns)) AS part_ns
    FROM gpu_busy AS b
    JOIN times AS t ON b.start_ns <= t.end_ns AND b.end_ns >= t.start_ns
)
SELECT
    gpu_id,
    coalesce(sum(part_ns) FILTER (WHERE is_wall), 0)::BIGINT AS busy_ns,
    coalesce(sum(part_ns) FILTER (WHERE NOT is_wall), 0)::BIGINT AS outside_ns
FROM parts
GROUP BY gpu_id;

COMMENT ON VIEW used_gpus IS 'The GPUs that did something in scope, and for how long: the sum of `gpu_busy`.';
COMMENT ON COLUMN used_gpus.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN used_gpus.busy_ns IS 'How long it was busy, within the wall';
COMMENT ON COLUMN used_gpus.outside_ns IS 'How long it was busy outside the wall: with --nvtx or --to, work may run after the time in which it was selected';
