/*
title = "Ranks: which one makes the others wait"
topic = "ranks"
place = 0
page = false
question = "Which rank is late, by how much, and what does it do meanwhile?"
examples = ["'run/rank*.nsys-rep'", "'run/rank*.nsys-rep' --steady"]
main = ["rank", "cost_ns", "step_ns", "busy_ns", "waiting_ns", "transfer_ns", "idle_ns", "host_ns", "because"]
details = ["late_steps", "late_ns", "nccl_kernels", "process_id", "gpu_id", "trace"]
description = """
Describes each rank: a process on a GPU that runs NCCL kernels, whether in several traces or in several processes of
one. Times are means over the steady steps (see steps), each from the end of the last collective before it to the
end of its own last one: ranks leave collectives together, so their steps begin and end together. busy is all GPU
work except NCCL's kernels, waiting is time in which it only waits in a collective for others, transfer time in
which it only communicates, idle the rest. A late rank waits least: late_ns is how much less than any other rank it
waits, at most what the step is longer than the host of another rank works. Less than 50 µs, 1 % of the step and three
times the clock error is not counted. because says what a late rank does longer than the others in the steps in which
it is late. Rows are sorted by cost_ns, what the lateness of a rank costs the run."""
reading = """
host: look at the trace of that rank alone (gaps, host, nvtx), at the place that because names. gpu: a larger share
of the work, or a slower clock: compare top on both ranks. Waiting that affects all ranks in turn is jitter, or work
that is distributed unevenly from step to step. Where host_ns is about step_ns on all ranks, each launches too slowly:
the cure is the same on all, such as a CUDA graph. Overlapping communication with work can hide transfer, but not
waiting."""
empty = "No NCCL kernels are recorded in this scope."

[columns]
rank = "Number of the rank"
step_ns = "Mean step time"
busy_ns = "Time per step in which the GPU is busy with work other than NCCL kernels"
waiting_ns = "Time per step in which it only waits for other ranks"
transfer_ns = "Time per step in which it only communicates"
idle_ns = "Time per step in which the GPU is idle"
host_ns = """\
Time per step in which its host works, without waits for the GPU; NULL where unknown, or no rank waits for another"""
late_steps = "Number of steps in which it is late"
late_ns = "How late it is in those steps; a mean"
cost_ns = "What that costs the run per step: a mean over all steps"
because = "What it does longer than the others in those steps; NULL where the numbers do not show it"
nccl_kernels = "NCCL kernels that it ran"
process_id = "Operating system's process id"
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"
trace = "The trace, if there are several"

[notes]
run = """
SELECT CASE r.verdict
    WHEN 'late' THEN (
        SELECT
            CASE count(*)
                WHEN 1 THEN 'rank ' || any_value(rank) || ' is'
                ELSE 'ranks ' || string_agg(rank, ', ' ORDER BY rank) || ' are'
            END
            || ' late; ' || (SELECT text FROM _others_wait)
        FROM (SELECT DISTINCT rank FROM rank_steps WHERE late_ns > 0)
    )
    WHEN 'moving' THEN 'no single rank is late: it is a different one from step to step'
    WHEN 'host' THEN 'no rank is late by itself: ' || (SELECT text FROM _host_pace)
    WHEN 'even' THEN 'no rank is later than the others by enough to report'
    ELSE CASE
        WHEN r.unmatched IS NOT NULL THEN NULL
        WHEN r.ranks = 1 THEN 'only one rank: pass the traces of the others as well, to see which rank waits for which'
        ELSE 'the capture has too few collectives: no step begins and ends with one that all ranks have' END
END
FROM rank_run AS r WHERE EXISTS (FROM answer)"""
unit = """
SELECT 'no steps were found: times are per collective, including the work before it'
FROM rank_run
WHERE unit = 'collective' AND verdict IS NOT NULL"""
clock = "SELECT clock FROM rank_run WHERE clock IS NOT NULL"
pipeline = "SELECT pipeline FROM rank_run WHERE pipeline IS NOT NULL"
doubled = "SELECT doubled FROM rank_run WHERE doubled IS NOT NULL"
missing = "SELECT missing FROM rank_run WHERE missing IS NOT NULL"
unmatched = "SELECT unmatched FROM rank_run WHERE unmatched IS NOT NULL"
numbered = """
SELECT
    'the traces do not say which rank is which: they are numbered in order'
        || CASE WHEN count(DISTINCT trace) > 1 THEN ' of traces' ELSE ' of GPUs and processes' END
FROM ranks WHERE (SELECT numbered_by = 'order' AND doubled IS NULL FROM rank_run) HAVING count(*) > 1"""
*/
WITH means AS (
    SELECT
        rank, avg(wall_ns) AS step_ns, avg(busy_ns) AS busy_ns, avg(waiting_ns) AS waiting_ns,
        avg(transfer_ns) AS transfer_ns,
        avg(idle_ns) AS idle_ns, avg(host_ns) AS host_ns, avg(late_ns) AS cost_ns,
        count(*) FILTER (late_ns > 0) AS late_steps,
        avg(late_ns) FILTER (late_ns > 0) AS late_ns
    FROM rank_steps
    GROUP BY rank
)
SELECT
    r.rank, m.step_ns, m.busy_ns, m.waiting_ns, m.transfer_ns, m.idle_ns, m.host_ns, m.late_steps, m.late_ns, m.cost_ns,
    CASE r.cause
        WHEN 'host'
            THEN coalesce(r.host, 'its host') || coalesce(' in ' || r.place, ' before ' || r.stretch_before, '')
        WHEN 'gpu' THEN format('its GPU is busy {:.2g} times as long', r.busy_ratio)
        WHEN 'both'
            THEN format('its GPU is busy {:.2g} times as long', r.busy_ratio) || ', and '
                || coalesce(r.host, 'its host') || coalesce(' in ' || r.place, '')
    END AS because,
    r.nccl_kernels, r.process_id, r.gpu_id, r.trace
FROM ranks AS r
LEFT JOIN means AS m USING (rank)
ORDER BY m.cost_ns DESC NULLS LAST, r.rank, r.trace, r.process_id, r.device_id
