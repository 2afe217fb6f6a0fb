/*
title = "The ranks wait for each other: now this one is late and now that"
family = "ranks"
of_run = true
overlaps = true
meaning = """
In each step some rank comes last to a collective, and it is not always the same: nothing is wrong with one of them, but what they do
takes a different time from step to step."""
action = """
Make the steps of all ranks alike: lengths sorted or padded into buckets, data loaded ahead, garbage collection at the same step,
processes pinned to cores. Fewer collectives a step, too, let short delays cancel out."""
caveat = """
The work is uneven by nature, as with experts: then deal it out anew (see ranks)."""
report = "ranks"
*/
WITH late AS (
    SELECT rank, count(*) FILTER (late_ns > 0) AS steps, sum(late_ns)::DOUBLE AS late_ns
    FROM rank_steps
    GROUP BY rank
    HAVING count(*) FILTER (late_ns > 0) > 0
),
per AS (
    SELECT count(DISTINCT step) AS steps, sum(late_ns)::DOUBLE AS late_ns, avg(wall_ns) AS wall_ns, avg(waiting_ns) AS waiting_ns
    FROM rank_steps
)
SELECT
    p.late_ns / p.steps / $tokens AS recoverable_ns,
    100 * p.late_ns / p.steps / p.wall_ns AS wall_pct,
    NULL::VARCHAR AS place,
    'in ' || (SELECT sum(steps)::BIGINT FROM late) || ' of ' || p.steps || ' ' || r.unit || 's one rank is late, '
        || (SELECT count(*) FROM late) || ' of ' || r.ranks || ' ranks by turns, most often rank '
        || (SELECT arg_max(rank, (steps, -rank)) || ' (' || max(steps) || ' times)' FROM late)
        || '; a rank waits ' || time_text(p.waiting_ns) || ' a ' || r.unit || ' in the mean' AS evidence
FROM rank_run AS r, per AS p
WHERE r.verdict = 'moving'
