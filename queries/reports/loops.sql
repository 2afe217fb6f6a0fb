/*
title = "Loops of the program"
topic = "steps"
place = 11
question = "Which loops does the program run, and how long is an iteration of each?"
examples = ["", "--format json"]
main = ["loop", "iterations", "period_ns", "gpu_busy_ns", "gpu_idle_ns", "launches", "operations", "gpu_pct"]
description = """
Recovers the loops from the order in which the busiest process launches its operations: training steps, the layers in
a step, the requests around decoded tokens. Repetitions are folded from the inside out, and an iteration that differs
a little (a logged value, another kernel) still belongs to its loop. A period lasts from the first operation of an
iteration to the first one of the next, on the GPU: it has all the host work in between. Loops with less than a
thousandth of the GPU time are left out."""
reading = """
The outermost loop with most of the GPU time is usually the step: `steps` says which one is used. A period that is
much longer than gpu_busy_ns leaves the GPU idle: gaps shows where. Many launches with a short period inside a step
are layers: fusion and graph-candidates look at these. loop-iteration --loop 1.1 lists one
iteration of that loop."""
empty = "No loops: the process repeats nothing that holds a thousandth of its GPU time"

[shares]
gpu_pct = "the GPU time of the process"

[columns]
loop = "Number of the loop; 1.2 is the second loop inside loop 1"
iterations = "Iterations in total"
per_parent = "Iterations in each iteration of the loop around it, median"
period_ns = "Time from the start of an iteration to the start of the next one, median"
period_low_ns = "The same, first quartile"
period_high_ns = "The same, third quartile"
gpu_busy_ns = "Time of an iteration in which the GPU was busy, median"
gpu_idle_ns = "Time of an iteration in which the GPU was idle, median"
launches = "Kernels and graphs that an iteration launches, median"
operations = "Operations of an iteration: kernels, copies, memsets and graphs, median"
gpu_pct = "Share of the GPU time"
*/
SELECT
    loop,
    iterations,
    per_parent,
    period_ns,
    period_low_ns,
    period_high_ns,
    gpu_busy_ns,
    gpu_idle_ns,
    launches,
    operations,
    100 * gpu_share AS gpu_pct
FROM loops
ORDER BY list_transform(string_split(loop, '.'), lambda part: part::BIGINT)
