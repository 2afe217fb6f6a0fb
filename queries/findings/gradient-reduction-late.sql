/*
code = "NSI511"
title = "Gradients are reduced one by one after the backward pass"
family = "communication"
explains = ["exposed-communication"]
meaning = """
The collectives of a step begin only after its last matrix product, one after another. Reductions in buckets can run
while the backward pass still computes."""
evidence = [
    "{collectives:collective} a step begin {after_ns} after the last matrix product, in {late_steps} of {steps:step}",
    "from the first to the last of them takes {span_ns}, in which they run for {comm_ns}",
]
caveat = """
The gradients of all layers are ready only at the end, as with one bucket or shared parameters."""
effort = "function"
numerics = "rounding"
estimate = """
High: the time from the first collective of a step to its last one, which the backward pass can hide. Low: a third of
it."""
links = ["PyTorch documentation, DistributedDataParallel: internal design", "NCCL documentation, Group Calls"]
report = "steps"
when = "SELECT 1 FROM kernel_names WHERE provenance = 'NCCL' LIMIT 1"

[cure]
any = "Reduce the gradients in buckets as soon as they are ready, on a stream of its own."
pytorch = """
Wrap the model in DistributedDataParallel (gradient_as_bucket_view=True), which reduces buckets during the
backward pass; a BF16 compression hook halves the bytes."""
jax = "Let XLA's latency-hiding scheduler overlap the all-reduces with the backward pass."
cuda = "Launch ncclAllReduce per bucket on a second stream as soon as its gradients are ready, in a group call."

[params.least_collectives]
default = 4
help = "Fewest collectives in a step (4: with fewer, they are buckets already)"
*/
WITH step_kernels_in_order AS (
    SELECT
        s.step, min(k.start_ns) FILTER (n.family = 'comm') AS first_ns,
        max(k.end_ns) FILTER (n.family = 'comm') AS last_ns,
        max(k.end_ns) FILTER (n.family = 'gemm') AS product_ns, count(*) FILTER (n.family = 'comm') AS collectives,
        sum(k.duration_ns) FILTER (n.family = 'comm')::DOUBLE AS comm_ns
    FROM (FROM steps WHERE phase = 'steady') AS s
    JOIN kernel_events AS k ON k.start_ns >= s.start_ns AND k.start_ns < s.end_ns AND k.process_id = s.process_id
    JOIN kernel_names AS n USING (name_id)
    GROUP BY s.step
),
late_steps AS (
    SELECT
        count(*) FILTER (first_ns >= product_ns) AS late_steps, count(*) AS steps, avg(collectives) AS collectives,
        avg(last_ns - first_ns) AS span_ns, avg(comm_ns) AS comm_ns, avg(first_ns - product_ns) AS after_ns
    FROM step_kernels_in_order
    WHERE collectives >= $least_collectives AND product_ns IS NOT NULL
    HAVING late_steps >= 0.75 * count(*) AND count(*) > 0
)
SELECT
    least(l.span_ns, t.busy_ns) AS recoverable_ns,
    recoverable_ns / 3 AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    l.collectives, l.after_ns, l.late_steps, l.steps, l.span_ns, l.comm_ns
FROM late_steps AS l, _step_totals AS t
