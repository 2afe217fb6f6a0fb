/*
code = "NSI513"
title = "Gradients are reduced in FP32"
family = "fp32-gradients"
overlaps = true
meaning = "Each gradient is sent in four bytes. In BF16 it takes two, and the transfer half the time."
evidence = [
    "{collectives:collective} of FP32 sums per step {#collectives:runs|run} for {collective_ns}",
    "for {exposed_ns} of that the GPU runs nothing else",
    "they send {sent_bytes} per step",
]
skip_if = "Training needs the precision of FP32 sums, or the transfer is hidden behind the backward pass."
effort = "line"
numerics = "precision"
estimate = """
High: half of the time in which they run alone, without waits for other ranks where these are known. Low: a quarter."""
links = ["PyTorch documentation, DDP Communication Hooks", "PyTorch documentation, MixedPrecisionPolicy: reduce_dtype"]
report = "collectives"
when = "SELECT 1 FROM kernel_names WHERE provenance = 'NCCL' AND name LIKE '%\\_Sum\\_f32%' ESCAPE '\\' LIMIT 1"

[fix]
any = "Convert the gradients to BF16 before they are reduced."
pytorch = """
DDP: model.register_comm_hook(None, torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook).
FSDP: MixedPrecisionPolicy(reduce_dtype=torch.bfloat16)."""
jax = "Reduce in BF16: cast the gradients before psum or the sharded sum."
cuda = "Convert the gradients to BF16, and reduce with ncclBfloat16."

[params]
min_run_ns = [50000, "Shortest collective that counts: for less, the time is latency, not bytes (50 µs)"]
*/
WITH totals AS (
    SELECT
        count(*)::DOUBLE AS collectives, sum(end_ns - start_ns)::DOUBLE AS collective_ns,
        sum(exposed_ns)::DOUBLE AS exposed_ns,
        CASE WHEN count(bytes) = count(*) THEN sum(bytes)::DOUBLE END AS sent_bytes
    FROM _exposed_collectives
    WHERE regexp_matches(name, '(AllReduce|ReduceScatter)_Sum_f32') AND end_ns - start_ns >= $min_run_ns
)
SELECT
    c.exposed_ns / t.units * (1 - coalesce($waiting_pct, 0) / 100) / 2 AS recoverable_ns,
    recoverable_ns / 2 AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    c.collectives / t.units AS collectives, c.collective_ns / t.units AS collective_ns,
    c.exposed_ns / t.units AS exposed_ns, c.sent_bytes / t.units AS sent_bytes
FROM totals AS c, _step_totals AS t
WHERE t.has_steps AND c.collectives > 0
    AND EXISTS (
        FROM _steady_shapes
        WHERE regexp_matches(name, '(?i)multi_tensor|adam|sgd|lamb([^d]|$)|addcdiv|optimizer|backward|_bwd|dgrad|wgrad')
    )
