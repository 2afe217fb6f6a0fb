/*
title = "Ranks: who makes the others wait"
topic = "ranks"
place = 0
page = false
question = "Which rank is late, by how much, and what is it doing meanwhile?"
main = ["rank", "step_ns", "busy_ns", "waiting_ns", "transfer_ns", "idle_ns", "late_steps", "late_ns", "because"]
details = ["nccl_kernels", "process_id", "gpu_id", "trace"]
description = """
Describes each rank: a process on a GPU that runs kernels of NCCL, be they in several traces or several processes of one. Times
are means over the steady steps (see steps), each from the end of the last collective before it to the end of its own last one:
ranks leave collectives together, so their steps begin and end at once. busy is all work of the GPU but NCCL's kernels, waiting
what it does nothing but wait in a collective for others, transfer what it does nothing but communicate, idle the rest. A rank
that is late waits least: late_ns is by how much less than any other. Less than 50 µs, 1 % of the step and three times the
clocks' error is not counted. because tells what a late rank does longer than the others do in the steps in which it is late."""
reading = """
host: look at the rank's trace alone (gaps, host, nvtx) where because says. gpu: a larger share of the work, or a slower clock: top
on both ranks. Waiting that falls on all ranks in turn is jitter, or work that is dealt unevenly from step to step. transfer is what
overlapping communication with work can hide; waiting is not."""
empty = "No kernels of NCCL are recorded in this scope."

[columns]
rank = "Its number"
step_ns = "How long a step takes"
busy_ns = "Of it, the GPU works"
waiting_ns = "It waits for other ranks, and does nothing else"
transfer_ns = "It communicates, and does nothing else"
idle_ns = "It does nothing"
late_steps = "In how many steps it is late"
late_ns = "By how much, in those steps; a mean"
because = "What it does longer in those steps; NULL where the numbers do not say"
nccl_kernels = "Kernels of NCCL that it ran"
process_id = "Operating system's process id"
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"
trace = "The trace, where there are several"

[notes]
run = """
SELECT CASE r.verdict
    WHEN 'late' THEN (
        SELECT CASE count(*) WHEN 1 THEN 'rank ' || any_value(rank) || ' is' ELSE 'ranks ' || string_agg(rank, ', ' ORDER BY rank) || ' are' END
            || ' late; ' || (SELECT text FROM _others_wait)
        FROM (SELECT DISTINCT rank FROM rank_steps WHERE late_ns > 0)
    )
    WHEN 'moving' THEN 'no rank is the one that is late: it is now this one and now that'
    WHEN 'even' THEN 'no rank is later than others by enough to be named'
    ELSE CASE WHEN r.unmatched IS NOT NULL THEN NULL WHEN r.ranks = 1 THEN 'one rank alone: name the traces of the others as well, to see who waits for whom'
        ELSE 'the collectives of these ranks cannot be matched with each other: they belong to different runs, or captures lack some' END
END
FROM rank_run AS r WHERE EXISTS (FROM answer)"""
unit = """
SELECT 'no steps are known: times are of each collective, with what is before it' FROM rank_run WHERE unit = 'collective' AND verdict IS NOT NULL"""
clock = "SELECT clock FROM rank_run WHERE clock IS NOT NULL"
pipeline = "SELECT pipeline FROM rank_run WHERE pipeline IS NOT NULL"
doubled = "SELECT doubled FROM rank_run WHERE doubled IS NOT NULL"
missing = "SELECT missing FROM rank_run WHERE missing IS NOT NULL"
unmatched = "SELECT unmatched FROM rank_run WHERE unmatched IS NOT NULL"
numbered = """
SELECT 'nothing says which rank is which: they are numbered in order' || CASE WHEN count(DISTINCT trace) > 1 THEN ' of traces' ELSE ' of GPUs and processes' END
FROM ranks WHERE (SELECT numbered_by = 'order' AND doubled IS NULL FROM rank_run) HAVING count(*) > 1"""
*/
WITH means AS (
    SELECT
        rank, avg(wall_ns) AS step_ns, avg(busy_ns) AS busy_ns, avg(waiting_ns) AS waiting_ns, avg(transfer_ns) AS transfer_ns,
        avg(idle_ns) AS idle_ns, count(*) FILTER (late_ns > 0) AS late_steps, avg(late_ns) FILTER (late_ns > 0) AS late_ns
    FROM rank_steps
    GROUP BY rank
)
SELECT
    r.rank, m.step_ns, m.busy_ns, m.waiting_ns, m.transfer_ns, m.idle_ns, m.late_steps, m.late_ns,
    CASE r.cause
        WHEN 'host' THEN coalesce(r.host, 'its host') || coalesce(' in ' || r.place, '')
        WHEN 'gpu' THEN format('its GPU works {:.2g} times as long', r.busy_ratio)
        WHEN 'both' THEN format('its GPU works {:.2g} times as long', r.busy_ratio) || ', and ' || coalesce(r.host, 'its host') || coalesce(' in ' || r.place, '')
    END AS because,
    r.nccl_kernels, r.process_id, r.gpu_id, r.trace
FROM ranks AS r
LEFT JOIN means AS m USING (rank)
ORDER BY r.rank, r.trace, r.process_id, r.device_id
