/*
title = "Prefill, decode and other phases"
topic = "steps"
place = 6
question = "What does a step of each phase cost: prefill, decode by batch size and CUDA graph, steps that do both?"
main = ["phase", "batch_size", "steps", "median_ns", "wall_pct", "gpu_busy_ns", "gpu_idle_ns", "kernels", "launch_calls"]
description = """
Counts the steps of the phases that NVTX ranges name, in the busiest process: prefill and decode, by word or as vLLM,
TensorRT-LLM and SGLang write their steps; else forward, backward and optimizer. A range around them that is called a step, an
iteration and so on, and holds no more than one decode, is the step; one with both is mixed, which is what
continuous batching does. Rows are per phase, batch size (as the range's name says) and CUDA graph. The wall of a step is its
range's own time where the work launched in it also runs in it; else it is on the GPU's timeline, from the step's first operation
to the next one's. --phase NAME narrows any report to one of them."""
reading = """
A decode step of the same model should cost about the same at every batch size that memory bounds: a jump from one batch
size to the next, or between rows with and without a graph, is the host's (idle time) or a kernel's (busy time). Mixed steps make
those that decode wait for a prefill: see latency for what that does to the time between tokens. The budget of one phase is
per-token --phase decode."""
empty = "No NVTX range names a phase. Put ranges called prefill and decode around them (torch.cuda.nvtx.range, or NVTX_SCOPED_RANGE), or let the serving engine write its own, and capture with -t cuda,nvtx"
details = ["p5_ns", "p95_ns", "max_ns", "prompt_tokens", "kernels", "launch_calls", "sync_points"]

[params.group_by]
default = "batch"
choices = ["batch", "phase"]
help = "One row per phase, batch size and graph, or one per phase"

[columns]
phase = "prefill, decode, mixed (a step that does both), forward, backward or optimizer, as the ranges are called"
batch_size = "Sequences that a step decodes, or prompts that it prefills, as its name says; NULL where it does not, or of several"
graph = "The CUDA graph that the steps launch, by the number of its instantiation; NULL for none, or of several"
steps = "How many steps"
wall_pct = "Share of the trace's wall"
mean_ns = "Mean wall of a step"
median_ns = "Median of it"
p5_ns = "5th percentile; NULL for a single step"
p95_ns = "95th percentile, likewise"
max_ns = "The longest"
gpu_busy_ns = "How much of it the GPU was busy, on average"
gpu_idle_ns = "The rest"
prompt_tokens = "Tokens of the prompts that a step prefills, on average, as its name says"
kernels = "Kernels of a step, on average; NULL where a CUDA graph ran as a whole"
launch_calls = "Calls that put kernels on the GPU, on average"
sync_points = "Times that the host waited for the GPU, on average"

[notes]
outside = """
SELECT share_text(100 * (1 - p.busy_ns / b.busy_ns)) || ' of the GPU''s busy time is in none of these steps'
FROM (SELECT sum(gpu_busy_ns)::DOUBLE AS busy_ns FROM phase_steps) AS p,
    (SELECT avg(busy_ns)::DOUBLE AS busy_ns FROM (SELECT gpu_id, sum(end_ns - start_ns) AS busy_ns FROM gpu_busy GROUP BY gpu_id)) AS b
WHERE p.busy_ns < 0.95 * b.busy_ns"""
cost = """
SELECT 'a step that also prefills keeps those that decode waiting: ' || time_text(m.ns) || ' in place of ' || time_text(d.ns) || ' (medians)'
FROM (SELECT median(duration_ns) AS ns, count(*) AS steps FROM phase_steps WHERE phase = 'mixed') AS m,
    (SELECT median(duration_ns) AS ns, count(*) AS steps FROM phase_steps WHERE phase = 'decode') AS d
WHERE m.steps >= 3 AND d.steps >= 3 AND m.ns > 1.1 * d.ns"""
graphs = """
SELECT 'CUDA graphs ran as a whole: nobody knows their kernels; capture with --cuda-graph-trace=node to see them'
FROM phase_steps WHERE kernels IS NULL HAVING count(*) > 0"""

[agent]
rows = 12
columns = ["phase", "batch_size", "graph", "steps", "wall_pct", "mean_ns", "median_ns", "p95_ns", "gpu_busy_ns", "gpu_idle_ns"]
*/
WITH grouped AS (
    SELECT
        *,
        CASE WHEN $group_by = 'batch' THEN batch_size END AS of_batch,
        CASE WHEN $group_by = 'batch' THEN graph END AS of_graph
    FROM phase_steps
)
SELECT
    phase,
    of_batch AS batch_size,
    of_graph AS graph,
    count(*) AS steps,
    100.0 * sum(duration_ns)::DOUBLE / nullif((SELECT max(end_ns) - min(start_ns) FROM wall), 0) AS wall_pct,
    avg(duration_ns) AS mean_ns,
    median(duration_ns) AS median_ns,
    CASE WHEN count(*) > 1 THEN quantile_cont(duration_ns, 0.05) END AS p5_ns,
    CASE WHEN count(*) > 1 THEN quantile_cont(duration_ns, 0.95) END AS p95_ns,
    max(duration_ns) AS max_ns,
    avg(gpu_busy_ns) AS gpu_busy_ns,
    avg(gpu_idle_ns) AS gpu_idle_ns,
    avg(prompt_tokens) AS prompt_tokens,
    CASE WHEN count(kernels) = count(*) THEN avg(kernels) END AS kernels,
    avg(launch_calls) AS launch_calls,
    avg(sync_points) AS sync_points
FROM grouped
GROUP BY phase, of_batch, of_graph
ORDER BY coalesce(list_position(['prefill', 'mixed', 'decode', 'forward', 'backward', 'optimizer'], phase), 9), of_batch NULLS FIRST, of_graph NULLS FIRST
