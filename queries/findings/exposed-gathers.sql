/*
code = "NSI515"
title = "Sharded parameters are gathered while nothing computes"
family = "exposed-gathers"
explains = ["communication"]
meaning = """
With sharded parameters (FSDP, ZeRO), a layer can compute only after its parameters are gathered. If those of the next
layer are gathered meanwhile, this costs no time; if all are one unit, or nothing is prefetched, the GPU waits."""
evidence = [
    "{gathers:AllGather} and {scatters:ReduceScatter} {per} run for {collective_ns}",
    "for {exposed_ns} of that the GPU runs nothing else",
    "{waiting_pct} of the time that it only communicates is waiting for other ranks",
]
skip_if = """
The units are so small that the host cannot keep ahead: then fewer, larger units are faster, although they overlap
less."""
effort = "line"
estimate = """
High: the time in which gathers and scatters run alone, without waits for other ranks where these are known. Low: a
third of it: the first gather and the last scatter remain, and overlap slows down both sides."""
links = ["PyTorch documentation, FullyShardedDataParallel: backward_prefetch", "PyTorch documentation, fully_shard"]
report = "collectives"
when = "SELECT 1 FROM kernel_names WHERE provenance = 'NCCL' AND name LIKE '%AllGather%' LIMIT 1"

[fix.units]
any = "Shard in several units, such as one for a few layers, and gather the next unit while one computes."
pytorch = """
Call fully_shard for blocks of layers before the model (FSDP1: auto_wrap_policy=transformer_auto_wrap_policy), so that
the next block is gathered while one computes."""
jax = "Shard the parameters of each layer in a scan over layers, and let XLA's latency-hiding scheduler prefetch them."

[fix.prefetch]
any = "Start to gather the next unit before this one has computed."
pytorch = """
Prefetch: set_modules_to_forward_prefetch and set_modules_to_backward_prefetch (FSDP1: forward_prefetch=True,
backward_prefetch=BackwardPrefetch.BACKWARD_PRE, limit_all_gathers=False if memory allows), or keep parameters after
forward (reshard_after_forward=False)."""
jax = "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true starts gathers early."

[params]
min_units = [4.0, "With fewer gathers in a step, nearly all parameters are one unit (one gather forward, one backward)"]
min_busy_pct = [60.0, "Below this share of GPU busy time, the host sets the pace, and overlap saves little (a choice)"]
min_waiting_pct = [10.0, "Waiting for other ranks is stated from this share (a choice)"]
*/
WITH totals AS (
    SELECT
        count(*) FILTER (operation = 'AllGather')::DOUBLE AS gathers,
        count(*) FILTER (operation = 'ReduceScatter')::DOUBLE AS scatters,
        sum(end_ns - start_ns)::DOUBLE AS collective_ns, sum(exposed_ns)::DOUBLE AS exposed_ns
    FROM _exposed_collectives
    WHERE operation IN ('AllGather', 'ReduceScatter')
)
SELECT
    c.exposed_ns / t.units * (1 - coalesce($waiting_pct, 0) / 100) AS recoverable_ns,
    recoverable_ns / 3 AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    CASE WHEN c.gathers / t.units < $min_units THEN 'units' ELSE 'prefetch' END AS cure_case,
    c.gathers / t.units AS gathers, c.scatters / t.units AS scatters, c.collective_ns / t.units AS collective_ns,
    c.exposed_ns / t.units AS exposed_ns,
    CASE WHEN $waiting_pct >= $min_waiting_pct THEN $waiting_pct END AS waiting_pct
FROM totals AS c, _step_totals AS t
WHERE t.has_steps AND c.gathers > 0 AND c.scatters > 0 AND t.busy_ns >= $min_busy_pct / 100 * t.wall_ns
