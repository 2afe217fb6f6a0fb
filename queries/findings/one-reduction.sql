/*
code = "NSI518"
title = "All gradients are reduced at once after the backward pass"
family = "gradient-reduction-late"
explains = ["communication"]
meaning = """
One large reduction can begin only when the last gradient is ready. In several buckets, most of it runs while the
backward pass still computes."""
evidence = [
    "after the last matrix product, {collectives:reduction} of {run_ns} on average, in {late_steps} of {steps:step}",
    "for {exposed_ns} per step, the GPU runs nothing else",
]
skip_if = "The gradients are accumulated over several passes, or the model is one layer."
effort = "line"
numerics = "rounding"
estimate = """
High: the time in which the reductions run alone, without waits for other ranks where these are known; at most half of
the busy time. Low: a third of it."""
links = ["PyTorch documentation, DistributedDataParallel: bucket_cap_mb"]
report = "collectives"
when = "SELECT 1 FROM kernel_names WHERE provenance = 'NCCL' AND name LIKE '%AllReduce%' LIMIT 1"

[fix]
any = "Reduce the gradients in buckets of about 25 MB as soon as they are ready, on a stream of its own."
pytorch = """
Let DistributedDataParallel reduce several buckets: set bucket_cap_mb (25 by default) to a quarter of the gradients'
size in MB, at least 5."""
jax = "Let XLA reduce in parts: a lower --xla_gpu_all_reduce_combine_threshold_bytes, and the latency-hiding scheduler."
cuda = "Split the buffer, and launch ncclAllReduce per part on a second stream as soon as its gradients are ready."

[params]
max_collectives = [3, "Most reductions in a step (with more, the rule gradient-reduction-late applies)"]
min_run_ns = [200000, "Shortest mean of a reduction that can be divided (200 µs: about 25 MB over NVLinks)"]
*/
WITH products AS (
    SELECT s.step, max(k.end_ns) AS product_ns
    FROM (
        SELECT process_id, start_ns, end_ns FROM kernel_events
        WHERE name_id IN (SELECT name_id FROM kernel_names WHERE family = 'gemm')
    ) AS k
    ASOF JOIN _steady_windows AS s ON s.process_id = k.process_id AND s.start_ns <= k.start_ns
    WHERE k.start_ns < s.end_ns
    GROUP BY s.step
),
reductions AS (
    SELECT
        step, count(*) AS collectives, avg(end_ns - start_ns) AS run_ns, sum(exposed_ns) AS exposed_ns,
        min(start_ns) AS first_ns
    FROM _exposed_collectives
    WHERE operation = 'AllReduce' AND end_ns - start_ns >= $min_run_ns
    GROUP BY step
),
late_steps AS (
    SELECT
        count(*) FILTER (first_ns >= product_ns) AS late_steps, count(*) AS steps, avg(collectives) AS collectives,
        avg(run_ns) AS run_ns, avg(exposed_ns) AS exposed_ns
    FROM reductions JOIN products USING (step)
    WHERE collectives <= $max_collectives
    HAVING late_steps >= 0.75 * count(*) AND count(*) > 0
)
SELECT
    least(l.exposed_ns * (1 - coalesce($waiting_pct, 0) / 100), t.busy_ns / 2) AS recoverable_ns,
    recoverable_ns / 3 AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    l.collectives, l.run_ns, l.exposed_ns, l.late_steps, l.steps
FROM late_steps AS l, _step_totals AS t
WHERE t.has_steps
