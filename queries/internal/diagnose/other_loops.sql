-- Outermost loops before and after the steady steps that hold a tenth of the GPU time or more: other parts of the
-- program, such as another benchmark. The two largest.
WITH steady_time AS (
    SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM steps WHERE phase = 'steady'
)
SELECT l.loop, l.iterations, l.period_ns, 100 * l.gpu_share AS gpu_pct
FROM loops AS l, steady_time AS s
WHERE l.depth = 0 AND l.gpu_share >= 0.1 AND (l.end_ns <= s.start_ns OR l.start_ns >= s.end_ns)
    AND l.loop IS DISTINCT FROM (SELECT loop FROM step_method)
ORDER BY l.gpu_share DESC, l.loop
LIMIT 2
