-- Which operations come back evenly: `period` operations after they were there last, or nearly so (a fifth more or
-- less) in the share $regular of their gaps; and those hold the share $covered of the stream's operations, or of its
-- GPU time.
WITH gaps AS (
    SELECT
        token, kind, pos, duration_ns,
        greatest(0, start_ns - lag(end_ns) OVER (ORDER BY pos)) AS waited_ns,
        pos - lag(pos) OVER (PARTITION BY token ORDER BY pos) AS gap,
        done_ns - lag(done_ns) OVER (PARTITION BY token ORDER BY pos) AS gpu_ns
    FROM internal.step_stream
),
periods AS (
    SELECT token, quantile_disc(gap, 0.5) AS period FROM gaps GROUP BY token HAVING count(*) >= 3
)
SELECT
    p.token,
    any_value(g.kind) AS kind,
    count(*) AS occurrences,
    p.period,
    sum(g.duration_ns)::BIGINT AS own_ns,
    min(g.pos) AS first_pos,
    quantile_disc(g.waited_ns, 0.5) AS waited_ns
FROM gaps AS g JOIN periods AS p USING (token)
GROUP BY p.token, p.period
HAVING count(*) FILTER (abs(g.gap - p.period) <= p.period // 5) >= $regular * (count(*) - 1)
    AND (
        sum(g.gap) FILTER (abs(g.gap - p.period) <= p.period // 5)
            >= $covered * (SELECT max(pos) FROM internal.step_stream)
        OR sum(g.gpu_ns) FILTER (abs(g.gap - p.period) <= p.period // 5)
            >= $covered * (SELECT max(done_ns) FROM internal.step_stream)
    )
ORDER BY p.period, first_pos
