-- How busy the GPUs were, over the wall cut into pieces of one length: what is not a gap, as a mean over those in use.
-- Nothing of a wall that is several pieces of time.
WITH run AS MATERIALIZED (
    SELECT min(start_ns) AS from_ns, greatest(1, (max(end_ns) - min(start_ns) + $pieces - 1) // $pieces) AS piece_ns
    FROM wall
    HAVING count(*) = 1
),
pieces AS (
    SELECT g.gpu_id, p.piece
    FROM (SELECT DISTINCT gpu_id FROM used_gpus) AS g
    CROSS JOIN (SELECT unnest(range($pieces))::BIGINT AS piece) AS p
),
gaps AS (
    SELECT i.gpu_id, r.piece_ns, greatest(i.start_ns - r.from_ns, 0) AS first_ns,
        least(i.end_ns - r.from_ns, $pieces * r.piece_ns) AS end_ns
    FROM _idle_time AS i
    CROSS JOIN run AS r
    WHERE i.end_ns > r.from_ns
),
cut AS (
    SELECT *, first_ns // piece_ns AS piece FROM gaps WHERE end_ns > first_ns
    UNION ALL
    SELECT *, unnest(range(first_ns // piece_ns + 1, (end_ns - 1) // piece_ns + 1)) FROM gaps
    WHERE (end_ns - 1) // piece_ns > first_ns // piece_ns
),
idle AS (
    SELECT gpu_id, piece, sum(least(end_ns, (piece + 1) * piece_ns) - greatest(first_ns, piece * piece_ns)) AS idle_ns
    FROM cut
    GROUP BY gpu_id, piece
)
SELECT
    p.piece, any_value(r.from_ns + p.piece * r.piece_ns) AS start_ns,
    any_value(r.from_ns + (p.piece + 1) * r.piece_ns) AS end_ns,
    avg(100.0 - 100.0 * coalesce(i.idle_ns, 0) / r.piece_ns) AS busy_pct
FROM pieces AS p
CROSS JOIN run AS r
LEFT JOIN idle AS i USING (gpu_id, piece)
GROUP BY p.piece
ORDER BY p.piece
