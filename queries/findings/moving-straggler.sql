/*
code = "NSI503"
title = "The late rank changes from step to step"
family = "ranks"
is_cross_rank = true
overlaps = true
meaning = """
Another rank joins the collectives last from step to step. No single rank is at fault: the time that the work of the
ranks takes varies."""
evidence = [
    "in {late_steps} of {steps} {units} one rank is late, by {late_ns} on average",
    [
        "{late_ranks} of {ranks} ranks are late at least once; {top_pct} of the time is lost to rank {top_rank}",
        "{late_ranks} of {ranks} ranks are late at least once",
    ],
]
skip_if = "The work is inherently uneven, as in mixture-of-experts layers; then redistribute it."
effort = "function"
estimate = "How late the late rank of each step is: how much longer the others wait than it does."
links = ["NCCL documentation, Collective Operations"]
report = "ranks"

[fix]
any = """
Make the steps of all ranks alike: work of equal size on each, data loaded ahead, pauses at the same step, processes
bound to CPU cores. With fewer collectives per step, short delays cancel out."""
pytorch = """
Make the steps of all ranks alike: group sequences by length or pad them into buckets, load data ahead (DataLoader:
num_workers, prefetch_factor), run gc.collect() at the same step on all ranks (gc.disable() in between). With fewer
collectives per step, as with larger buckets, short delays cancel out."""
jax = """
Make the steps of all ranks alike: pad or pack sequences to one length, prefetch the batches on each host, and read
values back at the same step on all ranks. With fewer collectives per step, short delays cancel out."""
cuda = """
Make the steps of all ranks alike: partition the work evenly, read files ahead in another thread, and bind processes
to CPU cores (mpirun --bind-to, srun --cpu-bind). With fewer collectives per step, short delays cancel out."""
*/
WITH late_ranks AS (
    SELECT rank, sum(late_ns)::DOUBLE AS late_ns FROM rank_steps WHERE late_ns > 0 GROUP BY rank
),
latest AS (
    SELECT any_value(rank ORDER BY late_ns DESC, rank) AS rank, max(late_ns) / sum(late_ns) AS share, count(*) AS ranks
    FROM late_ranks
),
means AS (
    SELECT
        count(DISTINCT step) AS steps, avg(wall_ns) AS wall_ns,
        sum(late_ns)::DOUBLE AS late_ns, count(DISTINCT step) FILTER (late_ns > 0) AS late_steps
    FROM rank_steps
)
SELECT
    m.late_ns / m.steps / $tokens AS recoverable_ns,
    100 * m.late_ns / m.steps / m.wall_ns AS wall_pct,
    NULL::VARCHAR AS place,
    m.late_steps,
    m.steps,
    m.late_ns / m.late_steps AS late_ns,
    l.ranks AS late_ranks,
    r.ranks,
    -- Named where it is late for twice as long as it would be if all ranks were late alike.
    CASE WHEN l.share >= 2.0 / l.ranks THEN l.rank::VARCHAR END AS top_rank,
    CASE WHEN l.share >= 2.0 / l.ranks THEN 100 * l.share END AS top_pct,
    r.unit,
    r.unit || CASE WHEN m.steps > 1 THEN 's' ELSE '' END AS units
FROM rank_run AS r
CROSS JOIN means AS m
CROSS JOIN latest AS l
WHERE r.verdict = 'moving'
