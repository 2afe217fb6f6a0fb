/*
title = "Prefill, decode and other phases"
topic = "steps"
place = 6
question = "What does a step of each phase cost: prefill, decode by batch size and CUDA graph, steps that do both?"
examples = ["", "--group-by phase"]
main = [
    "phase", "batch_size", "steps", "median_ns", "wall_pct", "gpu_busy_ns", "gpu_idle_ns", "kernels", "launch_calls",
]
description = """
Counts the steps of the phases that NVTX ranges name, in the busiest process: prefill and decode, by word or as
vLLM, TensorRT-LLM and SGLang write their steps; else forward, backward and optimizer. A range around them that is
called step, iteration and so on, and contains at most one decode, is the step; one with both prefill and decode is
mixed, as with continuous batching. There is one row per phase, batch size (from the range's name) and CUDA graph.
The wall time of a step is its range's own time where the work launched in it also runs in it; else it is on the
GPU's timeline, from the step's first operation to that of the next step. --phase NAME narrows any report to one
phase."""
reading = """
A decode step of the same model should cost about the same at every batch size at which it is memory-bound: a jump
from one batch size to the next, or between rows with and without a graph, comes from the host (idle time) or a
kernel (busy time). In mixed steps, sequences that decode wait for a prefill: see latency for the effect on the time
between tokens. For the budget of one phase, see per-token --phase decode."""
empty = """\
No NVTX range names a phase. Put ranges named prefill and decode around the phases (torch.cuda.nvtx.range, or \
NVTX_SCOPED_RANGE), or let the serving engine write its own, and capture with -t cuda,nvtx"""
details = ["p5_ns", "p95_ns", "max_ns", "prompt_tokens", "kernels", "launch_calls", "sync_points"]

[params.group_by]
default = "batch"
choices = ["batch", "phase"]
help = "One row per phase, batch size and graph, or one per phase"

[columns]
phase = "prefill, decode, mixed (a step that does both), forward, backward or optimizer, as the ranges are named"
batch_size = """\
Sequences that a step decodes, or prompts that it prefills, from the range's name; NULL where it does not say, or \
for several sizes"""
graph = "The CUDA graph that the steps launch, by the number of its instantiation; NULL for none, or for several graphs"
steps = "Number of steps"
wall_pct = "Share of the trace's wall time"
mean_ns = "Mean step time"
median_ns = "Median step time"
p5_ns = "5th percentile; NULL for a single step"
p95_ns = "95th percentile; NULL for a single step"
max_ns = "Longest step time"
gpu_busy_ns = "Mean time per step in which the GPU was busy"
gpu_idle_ns = "Mean time per step in which it was idle"
prompt_tokens = "Mean prompt tokens that a step prefills, from the range's name"
kernels = "Mean kernels per step; NULL where a CUDA graph ran as a whole"
launch_calls = "Mean number of calls that put kernels on the GPU"
sync_points = "Mean number of times that the host waited for the GPU"

[notes]
outside.text = "{outside_pct} of the GPU's busy time is outside these steps"
outside.query = """
SELECT 100 * (1 - p.busy_ns / b.busy_ns) AS outside_pct
FROM (SELECT sum(gpu_busy_ns)::DOUBLE AS busy_ns FROM phase_steps) AS p,
    (SELECT avg(busy_ns)::DOUBLE AS busy_ns FROM used_gpus) AS b
WHERE p.busy_ns < 0.95 * b.busy_ns"""

cost.text = "a step that also prefills delays the sequences that decode: {mixed_ns} instead of {decode_ns} (medians)"
cost.query = """
SELECT m.ns AS mixed_ns, d.ns AS decode_ns
FROM (SELECT median(duration_ns) AS ns, count(*) AS steps FROM phase_steps WHERE phase = 'mixed') AS m,
    (SELECT median(duration_ns) AS ns, count(*) AS steps FROM phase_steps WHERE phase = 'decode') AS d
WHERE m.steps >= 3 AND d.steps >= 3 AND m.ns > 1.1 * d.ns"""

graphs.use = "steady_graphs"
graphs.text = """
CUDA graphs ran as a whole: their kernels are not in the trace; capture with --cuda-graph-trace=node to see them"""
graphs.query = "SELECT count(*) AS steps FROM phase_steps WHERE kernels IS NULL HAVING count(*) > 0"
*/
WITH grouped_steps AS (
    SELECT
        *,
        CASE WHEN $group_by = 'batch' THEN batch_size END AS group_batch,
        CASE WHEN $group_by = 'batch' THEN graph END AS group_graph
    FROM phase_steps
)
SELECT
    phase,
    group_batch AS batch_size,
    group_graph AS graph,
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
FROM grouped_steps
GROUP BY phase, group_batch, group_graph
ORDER BY coalesce(list_position(['prefill', 'mixed', 'decode', 'forward', 'backward', 'optimizer'], phase), 9),
    group_batch NULLS FIRST, group_graph NULLS FIRST
