-- How busy the GPUs were, over the run cut into pieces of one length: what is not a gap, as a mean over those in use.
WITH pieces AS (
    SELECT g.gpu_id, p.piece, $from_ns + p.piece * $piece_ns::BIGINT AS from_ns
    FROM (SELECT DISTINCT gpu_id FROM used_gpus) AS g
    CROSS JOIN (SELECT unnest(range($pieces))::BIGINT AS piece) AS p
),
gaps AS (
    SELECT gpu_id, greatest(start_ns, $from_ns) AS start_ns, end_ns, greatest(start_ns, $from_ns) - $from_ns AS first_ns,
        least(end_ns, $from_ns + $pieces * $piece_ns::BIGINT) - 1 - $from_ns AS last_ns
    FROM _idle_time
    WHERE end_ns > $from_ns
),
cut AS (
    SELECT gpu_id, start_ns, end_ns, first_ns // $piece_ns AS piece FROM gaps WHERE last_ns >= first_ns
    UNION ALL
    SELECT gpu_id, start_ns, end_ns, unnest(range(first_ns // $piece_ns + 1, last_ns // $piece_ns + 1)) FROM gaps
    WHERE last_ns // $piece_ns > first_ns // $piece_ns
),
idle AS (
    SELECT gpu_id, piece,
        sum(least(end_ns, $from_ns + (piece + 1) * $piece_ns::BIGINT) - greatest(start_ns, $from_ns + piece * $piece_ns::BIGINT)) AS idle_ns
    FROM cut
    GROUP BY gpu_id, piece
)
SELECT p.piece, avg(100.0 - 100.0 * coalesce(i.idle_ns, 0) / $piece_ns) AS busy_pct
FROM pieces AS p
LEFT JOIN idle AS i USING (gpu_id, piece)
GROUP BY p.piece
ORDER BY p.piece
