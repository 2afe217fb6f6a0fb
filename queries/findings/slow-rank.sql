/*
title = "A rank's GPU works longer than the others', which wait for it"
family = "ranks"
of_run = true
overlaps = true
meaning = """
The same step keeps one GPU busy longer, so it comes last to the collectives; the others spin in their kernels until then."""
action = """
Compare its kernels with another rank's: nsys-insight top of both. More kernels, or other shapes: deal the work out evenly (sequence
lengths, layers, experts). The same ones, only slower: look at clocks, power and temperature of that GPU."""
caveat = """
The work has to lie on one rank, as a pipeline's last stage has the loss."""
report = "ranks"
*/
WITH cost AS (
    SELECT sum(late_ns)::DOUBLE AS late_ns, sum(wall_ns)::DOUBLE AS wall_ns, count(*) AS steps
    FROM (SELECT step, min(late_ns) FILTER (rank IN (SELECT rank FROM _lateness)) AS late_ns, max(wall_ns) AS wall_ns FROM rank_steps GROUP BY step)
),
waiting AS (
    SELECT avg(waiting_ns) AS waiting_ns FROM rank_steps WHERE rank NOT IN (SELECT rank FROM _lateness)
),
worst AS (
    FROM _lateness JOIN ranks USING (rank) ORDER BY late_ns * steps DESC, rank LIMIT 1
)
SELECT
    c.late_ns / c.steps / $tokens AS recoverable_ns,
    100 * c.late_ns / c.wall_ns AS wall_pct,
    CASE (SELECT count(*) FROM _lateness) WHEN 1 THEN 'rank ' ELSE 'ranks ' END || (SELECT string_agg(rank, ', ' ORDER BY rank) FROM _lateness) AS place,
    'late in ' || w.text || ': its GPU works '
        || format('{:.2g}', w.busy_ratio) || ' times as long; the others wait ' || time_text(o.waiting_ns) || ' a ' || r.unit || ' in the mean' AS evidence
FROM rank_run AS r, cost AS c, waiting AS o, worst AS w
WHERE r.verdict = 'late' AND w.cause = 'gpu'
