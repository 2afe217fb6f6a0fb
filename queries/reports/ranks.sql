/*
title = "Ranks: which one makes the others wait"
topic = "ranks"
place = 0
in_help = true
page = false
question = "Which rank is late, by how much, and what does it do meanwhile?"
examples = ["'run/rank*.nsys-rep'", "'run/rank*.nsys-rep' --parameters 8e9 --training --tokens-per-step 65536"]
main = ["rank", "cost_ns", "step_ns", "busy_ns", "waiting_ns", "transfer_ns", "idle_ns", "host_ns", "because"]
details = [
    "late_steps", "late_ns", "mfu_pct", "busy_mfu_pct", "peak_tflop_per_s", "nccl_kernels", "process_id", "gpu_id",
    "trace",
]
description = """
Describes each rank: a process on a GPU that runs NCCL kernels, whether in several traces or in several processes of
one. Times are means over the steady steps (see steps), each from the end of the last collective before it to the
end of its own last one: ranks leave collectives together, so their steps begin and end together. busy is all GPU
work except NCCL's kernels, waiting is time in which it only waits in a collective for others, transfer time in
which it only communicates, idle the rest. A late rank waits least: late_ns is how much less than any other rank it
waits, at most what the step is longer than the host of another rank works. Less than 50 µs, 1% of the step and three
times the clock error is not counted. because says what a late rank does longer than the others in the steps in which
it is late. Rows are sorted by cost_ns, what the lateness of a rank costs the run. mfu_pct is model FLOPs utilization:
operations of a step of the run, divided by the ranks, their step time, and the peak of a GPU at its maximum clock.
Operations are --flops-per-step, or 2 per parameter and token (6 with --training) with --parameters, for the tokens of a
step of all ranks together (--tokens-per-step, --batch)."""
reading = """
host: look at the trace of that rank alone (gaps, host, nvtx), at the place that because names. gpu: a larger share
of the work, or a slower clock: compare top on both ranks. Waiting that affects all ranks in turn is jitter, or work
that is distributed unevenly from step to step. Where host_ns is about step_ns on all ranks, each launches too slowly:
the cure is the same on all, such as a CUDA graph. Overlapping communication with work can hide transfer, but not
waiting."""
empty = """\
No NCCL kernels are recorded in this scope, and no MPI collectives of a process that uses a GPU (nsys profile -t \
cuda,nvtx,mpi)"""

[params.flops_per_step]
type = "number"
help = "Operations of a step on all ranks together, such as 1.2e15, by your own count"

[params.parameters]
type = "number"
help = "Parameters of the model that each token uses, such as 8e9"

[params.training]
default = false
help = "A step has a backward pass: 6 operations per parameter and token instead of 2"

[params.precision]
default = "fp16"
choices = ["fp64", "fp64_tensor", "fp32", "tf32", "fp16", "fp8", "fp4", "int8"]
help = "The precision whose peak to compare with (fp16 is that of bf16 as well)"

[params.peak]
type = "number"
help = "Peak of a GPU in 10^12 operations per second, such as 989 for an H100 by its data sheet"

[shares]
mfu_pct = "the peak of the GPU"
busy_mfu_pct = "the peak of the GPU"

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
peak_tflop_per_s = "Peak of its GPU, in 10^12 operations per second"
mfu_pct = "Model FLOPs utilization of the rank, if all ranks do the same share; NULL if the operations are unknown"
busy_mfu_pct = "Model FLOPs utilization in the time in which the GPU is busy with work other than NCCL kernels"
because = "What it does longer than the others in those steps; NULL where the numbers do not show it"
nccl_kernels = "NCCL kernels that it ran; in a program without them, its MPI collectives"
process_id = "Operating system's process id"
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"
trace = "The trace, if there are several"

[notes]
run = """
SELECT CASE r.verdict
    WHEN 'late' THEN (
        SELECT
            ranks_text(list(rank ORDER BY rank)) || CASE count(*) WHEN 1 THEN ' is' ELSE ' are' END
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
spread = """
SELECT
    'over ' || count(*) || ' ranks (least, median, most): busy ' || time_text(min(busy_ns)) || ', '
        || time_text(median(busy_ns)) || ', ' || time_text(max(busy_ns)) || '; waiting ' || time_text(min(waiting_ns))
        || ', ' || time_text(median(waiting_ns)) || ', ' || time_text(max(waiting_ns)) || '; idle '
        || time_text(min(idle_ns)) || ', ' || time_text(median(idle_ns)) || ', ' || time_text(max(idle_ns))
FROM answer WHERE step_ns IS NOT NULL HAVING count(*) > 8"""
hosts = """
SELECT 'all late ranks are on one of ' || any_value(n.hosts) || ' hosts: look at what else runs there'
FROM ranks AS r, (SELECT count(DISTINCT host_number) AS hosts FROM ranks) AS n
WHERE r.rank IN (SELECT rank FROM rank_steps WHERE late_ns > 0) AND (SELECT verdict = 'late' FROM rank_run)
HAVING count(*) > 1 AND count(DISTINCT r.host_number) = 1 AND count(r.host_number) = count(*)
    AND any_value(n.hosts) > 1"""
overlap = """
SELECT
    'a rank only communicates or waits for ' || time_text(avg(waiting_ns + transfer_ns)) || ' of a step of '
        || time_text(avg(step_ns)) || ' on average; if none of that remained, a step would take '
        || time_text(max(step_ns - waiting_ns - transfer_ns)) || ' or more'
FROM answer
WHERE step_ns IS NOT NULL
HAVING count(*) > 0 AND avg(waiting_ns + transfer_ns) >= 0.01 * avg(step_ns)
    AND (SELECT unit = 'step' FROM rank_run)"""
mfu = """
SELECT
    'MFU of the run: ' || format('{:.3g}', avg(mfu_pct)) || '% of ' || count(*) || ' × '
        || round(avg(peak_tflop_per_s), 1) || ' TFLOP/s in ' || $precision
        || '; if it never only communicated or waited: '
        || format('{:.3g}', avg(mfu_pct) * avg(step_ns) / max(step_ns - waiting_ns - transfer_ns)) || '% at most'
FROM answer WHERE mfu_pct IS NOT NULL HAVING count(*) > 0"""
clock = "SELECT clock FROM rank_run WHERE clock IS NOT NULL"
groups = "SELECT groups FROM rank_run WHERE groups IS NOT NULL"
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
),
operations AS (
    SELECT
        coalesce(
            $flops_per_step::DOUBLE,
            if($training, 6, 2) * $parameters::DOUBLE * (SELECT max(tokens_per_step) FROM step_method)
        ) / (SELECT count(*) FROM means) AS rank_flop
),
peaks AS (
    SELECT gpu, max(tflop_per_s) AS tflop_per_s FROM gpu_peaks WHERE precision = $precision GROUP BY gpu
)
SELECT
    r.rank, m.step_ns, m.busy_ns, m.waiting_ns, m.transfer_ns, m.idle_ns, m.host_ns, m.late_steps, m.late_ns, m.cost_ns,
    CASE WHEN o.rank_flop IS NOT NULL THEN coalesce($peak::DOUBLE, p.tflop_per_s) END AS peak_tflop_per_s,
    100 * o.rank_flop / m.step_ns / 1e3 / peak_tflop_per_s AS mfu_pct,
    100 * o.rank_flop / nullif(m.busy_ns, 0) / 1e3 / peak_tflop_per_s AS busy_mfu_pct,
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
LEFT JOIN peaks AS p ON p.gpu = r.gpu
CROSS JOIN operations AS o
ORDER BY m.cost_ns DESC NULLS LAST, r.rank, r.trace, r.process_id, r.device_id
