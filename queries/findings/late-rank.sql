/*
title = "A rank is late, and the others wait for it"
family = "ranks"
of_run = true
overlaps = true
meaning = """
A collective begins when the last rank has come to it; the others spin in its kernel until then, which looks like communication."""
action = """
Look at that rank alone, and at what its host does there: data that comes late, logging, garbage collection, a core that it shares.
Communication that is overlapped with work would not help."""
caveat = """
It does what only one rank can do, such as writing a checkpoint: then let the others go on meanwhile."""
report = "ranks"
*/
-- Several ranks that are late together cost what one of them does.
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
    CASE (SELECT count(*) FROM _lateness) WHEN 1 THEN 'rank ' ELSE 'ranks ' END || (SELECT string_agg(rank, ', ' ORDER BY rank) FROM _lateness)
        || coalesce(': ' || w.place, '') AS place,
    'late in ' || w.text || ': '
        || CASE w.cause
            WHEN 'host' THEN coalesce(w.host, 'its host') || coalesce(' in ' || w.place, '')
            WHEN 'both' THEN 'its GPU works ' || format('{:.2g}', w.busy_ratio) || ' times as long, and is idle longer'
            ELSE 'the trace does not say why'
        END || '; the others wait ' || time_text(o.waiting_ns) || ' a ' || r.unit || ' in the mean' AS evidence
FROM rank_run AS r, cost AS c, waiting AS o, worst AS w
WHERE r.verdict = 'late' AND w.cause IS DISTINCT FROM 'gpu'
