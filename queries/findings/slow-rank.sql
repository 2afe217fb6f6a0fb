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
WITH late AS (
    SELECT
        rank, count(*) FILTER (late_ns > 0) AS steps, avg(late_ns) FILTER (late_ns > 0) AS late_ns, count(*) AS all_steps,
        list(step ORDER BY step) FILTER (late_ns > 0) AS which
    FROM rank_steps
    GROUP BY rank
    HAVING count(*) FILTER (late_ns > 0) > 0
),
cost AS (
    SELECT sum(late_ns)::DOUBLE AS late_ns, sum(wall_ns)::DOUBLE AS wall_ns, count(*) AS steps
    FROM (SELECT step, min(late_ns) FILTER (rank IN (SELECT rank FROM late)) AS late_ns, max(wall_ns) AS wall_ns FROM rank_steps GROUP BY step)
),
waiting AS (
    SELECT avg(waiting_ns) AS waiting_ns FROM rank_steps WHERE rank NOT IN (SELECT rank FROM late)
),
worst AS (
    FROM late JOIN ranks USING (rank) ORDER BY late_ns * steps DESC, rank LIMIT 1
)
SELECT
    c.late_ns / c.steps / $tokens AS recoverable_ns,
    100 * c.late_ns / c.wall_ns AS wall_pct,
    CASE (SELECT count(*) FROM late) WHEN 1 THEN 'rank ' ELSE 'ranks ' END || (SELECT string_agg(rank, ', ' ORDER BY rank) FROM late) AS place,
    'late in ' || w.steps || ' of ' || w.all_steps || ' ' || r.unit || 's' || late_steps_text(w.which, w.all_steps) || ' by ' || time_text(w.late_ns) || ': its GPU works '
        || format('{:.2g}', w.busy_ratio) || ' times as long; the others wait ' || time_text(o.waiting_ns) || ' a ' || r.unit || ' in the mean' AS evidence
FROM rank_run AS r, cost AS c, waiting AS o, worst AS w
WHERE r.verdict = 'late' AND w.cause = 'gpu'
