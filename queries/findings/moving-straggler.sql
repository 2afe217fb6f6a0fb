/*
title = "The late rank changes from step to step"
family = "ranks"
is_cross_rank = true
overlaps = true
meaning = """
In each step some rank arrives last at a collective, and it is not always the same one: no single rank is at fault,
but the time that their work takes varies from step to step."""
action = """
Make the steps of all ranks alike: sort sequences by length or pad them into buckets, load data ahead, collect
garbage at the same step, pin processes to cores. With fewer collectives per step, short delays cancel out."""
caveat = """
The work is uneven by nature, as with experts; then redistribute it (see ranks)."""
report = "ranks"
*/
WITH late_ranks AS (
    SELECT rank, count(*) FILTER (late_ns > 0) AS steps, sum(late_ns)::DOUBLE AS late_ns
    FROM rank_steps
    GROUP BY rank
    HAVING count(*) FILTER (late_ns > 0) > 0
),
step_means AS (
    SELECT
        count(DISTINCT step) AS steps, sum(late_ns)::DOUBLE AS late_ns, avg(wall_ns) AS wall_ns,
        avg(waiting_ns) AS waiting_ns
    FROM rank_steps
)
SELECT
    p.late_ns / p.steps / $tokens AS recoverable_ns,
    100 * p.late_ns / p.steps / p.wall_ns AS wall_pct,
    NULL::VARCHAR AS place,
    'in ' || (SELECT sum(steps)::BIGINT FROM late_ranks) || ' of ' || p.steps || ' ' || r.unit || 's one rank is late, '
        || (SELECT count(*) FROM late_ranks) || ' of ' || r.ranks || ' ranks in turn, most often rank '
        || (SELECT arg_max(rank, (steps, -rank)) || ' (' || max(steps) || ' times)' FROM late_ranks)
        || '; a rank waits ' || time_text(p.waiting_ns) || ' per ' || r.unit || ' on average' AS evidence
FROM rank_run AS r, step_means AS p
WHERE r.verdict = 'moving'
