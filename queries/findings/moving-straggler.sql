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
        "{late_ranks} of {ranks} ranks are late at least once, most often rank {top_rank}: {top_steps:time}",
        "{late_ranks} of {ranks} ranks are late at least once",
    ],
    "a rank waits {rank_wait_ns} per {unit} on average",
]
caveat = """
The work is inherently uneven, as in mixture-of-experts layers; then redistribute it."""
effort = "function"
estimate = """
How late the late rank of each step is: how much longer the others wait than it does."""
links = ["NCCL documentation, Collective Operations"]
report = "ranks"

[cure]
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
    SELECT rank, count(*) AS steps FROM rank_steps WHERE late_ns > 0 GROUP BY rank
),
top_ranks AS (
    SELECT rank, steps FROM late_ranks QUALIFY rank() OVER (ORDER BY steps DESC) = 1
),
-- NULL if several ranks are late equally often.
top_rank AS (
    SELECT any_value(rank)::VARCHAR AS top_rank, any_value(steps) AS top_steps FROM top_ranks HAVING count(*) = 1
),
means AS (
    SELECT
        count(DISTINCT step) AS steps, avg(wall_ns) AS wall_ns, avg(waiting_ns) AS rank_wait_ns,
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
    (SELECT count(*) FROM late_ranks) AS late_ranks,
    r.ranks,
    t.top_rank,
    t.top_steps,
    m.rank_wait_ns,
    r.unit,
    r.unit || CASE WHEN m.steps > 1 THEN 's' ELSE '' END AS units
FROM rank_run AS r
CROSS JOIN means AS m
LEFT JOIN top_rank AS t ON true
WHERE r.verdict = 'moving'
