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
late.use = "run_late"
late.query = """
SELECT
    (SELECT list(DISTINCT rank ORDER BY rank) FROM rank_steps WHERE late_ns > 0) AS late_ranks,
    (SELECT waiting_ns FROM _others_wait) AS others_wait_ns, compared_with = 'itself' AS is_unusual, unit
FROM rank_run WHERE verdict = 'late' AND EXISTS (FROM answer)"""

host.use = "run_host"
host.query = "SELECT h.*, r.unit FROM rank_run AS r, _host_pace AS h WHERE r.verdict = 'host' AND EXISTS (FROM answer)"

run.text = [[
    "{?is_moving}no single rank is late: it is a different one from step to step",
    "{?is_even}no rank is later than the others by enough to report",
    "{?is_alone}only one rank: pass the traces of the others as well, to see which rank waits for which",
    "{?has_too_few}the capture has too few collectives: no step begins and ends with one that all ranks have",
]]
run.query = """
SELECT
    verdict = 'moving' AS is_moving, verdict = 'even' AS is_even, verdict IS NULL AND ranks = 1 AS is_alone,
    verdict IS NULL AS has_too_few
FROM rank_run
WHERE EXISTS (FROM answer) AND (
    verdict IS NOT NULL OR has_unmatched_messages IS NOT TRUE
    AND coalesce(unmatched, unmatched_ranks::VARCHAR, judged_ranks::VARCHAR, partial_collectives::VARCHAR) IS NULL
)"""

unit.text = "no steps were found: times are per collective, including the work before it"
unit.query = "FROM rank_run WHERE unit = 'collective' AND verdict IS NOT NULL"

spread.text = """
over {ranks:rank} (least, median, most): busy {min_busy_ns}, {busy_ns}, {max_busy_ns}; waiting {min_waiting_ns},
{waiting_ns}, {max_waiting_ns}; idle {min_idle_ns}, {idle_ns}, {max_idle_ns}"""
spread.query = """
SELECT
    count(*) AS ranks, min(busy_ns) AS min_busy_ns, median(busy_ns) AS busy_ns, max(busy_ns) AS max_busy_ns,
    min(waiting_ns) AS min_waiting_ns, median(waiting_ns) AS waiting_ns, max(waiting_ns) AS max_waiting_ns,
    min(idle_ns) AS min_idle_ns, median(idle_ns) AS idle_ns, max(idle_ns) AS max_idle_ns
FROM answer WHERE step_ns IS NOT NULL HAVING count(*) > 8"""

hosts.text = "all late ranks are on one of {hosts:host}: look at what else runs there"
hosts.query = """
SELECT any_value(n.hosts) AS hosts
FROM ranks AS r, (SELECT count(DISTINCT host_number) AS hosts FROM ranks) AS n
WHERE r.rank IN (SELECT rank FROM rank_steps WHERE late_ns > 0) AND (SELECT verdict = 'late' FROM rank_run)
HAVING count(*) > 1 AND count(DISTINCT r.host_number) = 1 AND count(r.host_number) = count(*)
    AND any_value(n.hosts) > 1"""

overlap.text = """
a rank only communicates or waits for {communication_ns} of a step of {step_ns} on average; if none of that remained, a
step would take {least_ns} or more"""
overlap.query = """
SELECT
    avg(waiting_ns + transfer_ns) AS communication_ns, avg(step_ns) AS step_ns,
    max(step_ns - waiting_ns - transfer_ns) AS least_ns
FROM answer
WHERE step_ns IS NOT NULL
HAVING count(*) > 0 AND avg(waiting_ns + transfer_ns) >= 0.01 * avg(step_ns)
    AND (SELECT unit = 'step' FROM rank_run)"""

mfu.text = """
MFU of the run: {mfu}% of {ranks} × {peak} TFLOP/s in {precision}; if it never only communicated or waited: {max_mfu}%
at most"""
mfu.query = """
SELECT
    avg(mfu_pct) AS mfu, count(*) AS ranks, format('{}', round(avg(peak_tflop_per_s), 1)) AS peak,
    $precision AS precision, avg(mfu_pct) * avg(step_ns) / max(step_ns - waiting_ns - transfer_ns) AS max_mfu
FROM answer WHERE mfu_pct IS NOT NULL HAVING count(*) > 0"""

clock.use = "clock"
groups.use = "groups"
pipeline.use = "pipeline"
doubled.use = "doubled"
missing.use = "missing"
unmatched.use = "unmatched"

numbered.text = """
the traces do not say which rank is which: they are numbered in order of <{?are_several}traces><{?is_one}GPUs and
processes>"""
numbered.query = """
SELECT count(DISTINCT trace) > 1 AS are_several, count(DISTINCT trace) = 1 AS is_one
FROM ranks WHERE (SELECT numbered_by = 'order' AND copies IS NULL AND claimants IS NULL FROM rank_run)
HAVING count(*) > 1"""
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
