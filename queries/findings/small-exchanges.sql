/*
code = "NSI517"
title = "Layers wait for small collectives"
family = "small-exchanges"
explains = ["communication"]
overlaps = true
meaning = """
The parts of a layer on several GPUs (tensor parallel) add their results before the next layer begins. For a few tokens
these are some KB: the time is the latency of the collective."""
evidence = [
    "{collectives:collective} {per}; half of them take less than {median_ns} where they wait least",
    "the GPU runs nothing else for {exposed_ns} of {wall_ns} {per}",
    "{waiting_pct} of the time that it only communicates is waiting for other ranks",
]
skip_if = "They carry gradients, which larger buckets can combine."
effort = "function"
numerics = "rounding"
estimate = """
High: half of the time in which they run alone, as a reduction in one step between GPUs with NVLinks takes about half
as long as NCCL's. Low: a fifth."""
links = ["PyTorch documentation, torch.distributed._symmetric_memory", "TensorRT-LLM documentation, custom AllReduce"]
report = "collectives"
when = """
SELECT 1 FROM _steady_shapes
HAVING sum(calls) FILTER (family = 'comm') >= $min_collectives AND NOT bool_or(
    regexp_matches(name, '(?i)multi_tensor|adam|sgd|lamb([^d]|$)|addcdiv|optimizer|backward|_bwd|dgrad|wgrad')
)"""

[fix]
any = """
Have each layer exchange once instead of twice (attention and MLP in parallel), put the step with its collectives into
a CUDA graph, and use a reduction that needs one step between GPUs with NVLinks."""
pytorch = """
Put the step with its collectives into a CUDA graph, and use the reductions of symmetric memory
(torch.ops.symm_mem.one_shot_all_reduce) or of the inference engine (vLLM and TensorRT-LLM: custom all-reduce, on by
default where GPUs reach each other); on few GPUs, try fewer ranks."""

[params]
min_collectives = [8, "Fewest collectives in a step (a choice)"]
max_median_ns = [40000,
    "Longest median of a collective that counts as small (40 µs: the latency of NCCL is 6 to 30 µs)"]
min_waiting_pct = [10.0, "Waiting for other ranks is stated from this share (a choice)"]
*/
WITH numbered_collectives AS (
    SELECT *, end_ns - start_ns AS run_ns, row_number() OVER (PARTITION BY step ORDER BY start_ns) AS turn
    FROM _exposed_collectives
    WHERE operation IN ('AllReduce', 'AllGather', 'ReduceScatter')
),
-- Some of its time a collective waits for other ranks: the shortest of all steps waits least.
shortest_runs AS (
    SELECT turn, min(run_ns) AS run_ns FROM numbered_collectives GROUP BY turn
),
totals AS (
    SELECT
        count(*)::DOUBLE AS collectives, sum(exposed_ns)::DOUBLE AS exposed_ns,
        (SELECT median(run_ns) FROM shortest_runs) AS median_ns
    FROM numbered_collectives
)
SELECT
    c.exposed_ns / t.units * (1 - coalesce($waiting_pct, 0) / 100) / 2 AS recoverable_ns,
    recoverable_ns * 2 / 5 AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    c.collectives / t.units AS collectives, c.median_ns, c.exposed_ns / t.units AS exposed_ns, t.wall_ns,
    CASE WHEN $waiting_pct >= $min_waiting_pct THEN $waiting_pct END AS waiting_pct
FROM totals AS c, _step_totals AS t
WHERE t.has_steps AND c.collectives >= $min_collectives * t.units AND c.median_ns <= $max_median_ns
