/*
code = "NSI511"
title = "Gradients are reduced one by one after the backward pass"
family = "gradient-reduction-late"
meaning = """
The collectives of a step begin only after its last matrix product, one after another. Reductions in buckets can run
while the backward pass still computes."""
evidence = [
    "{collectives:collective} {per} begin {after_ns} after the last matrix product, in {late_steps} of {steps:step}",
    "from the end of the first to the end of the last takes {span_ns}, in which they run for {comm_ns}",
    "{?is_host_loop}for the rest, the GPU waits for the loop of the host that calls them",
]
skip_if = "The gradients of all layers are ready only at the end, as with one bucket or shared parameters."
effort = "function"
numerics = "rounding"
estimate = """
High: the time from the end of the first collective of a step to the end of its last one, which the backward pass can
hide, and in which the host launches them one by one; at most the larger of busy and idle time. Low: a third of it."""
links = ["PyTorch documentation, DistributedDataParallel: internal design", "NCCL documentation, Group Calls"]
report = "steps"
when = "SELECT 1 FROM kernel_names WHERE provenance = 'NCCL' LIMIT 1"

[fix]
any = "Reduce the gradients in buckets as soon as they are ready, on a stream of its own."
pytorch = """
Wrap the model in DistributedDataParallel (gradient_as_bucket_view=True), which reduces buckets during the
backward pass; a BF16 compression hook halves the bytes."""
jax = "Let XLA's latency-hiding scheduler overlap the all-reduces with the backward pass."
cuda = "Launch ncclAllReduce per bucket on a second stream as soon as its gradients are ready, in a group call."

[params]
min_pct = [20.0,
    "Share of a step from which a loop that launches them slowly is the first cause of such waits (a choice)"]
min_collectives = [4, "Fewest collectives in a step (4: with fewer, they are buckets already)"]
*/
WITH step_events AS (
    SELECT s.step, k.start_ns, k.end_ns, n.family
    FROM (
        SELECT process_id, start_ns, end_ns, name_id FROM kernel_events
        WHERE name_id IN (SELECT name_id FROM kernel_names WHERE family IN ('comm', 'gemm'))
    ) AS k
    ASOF JOIN _steady_windows AS s ON s.process_id = k.process_id AND s.start_ns <= k.start_ns
    JOIN kernel_names AS n USING (name_id)
    WHERE k.start_ns < s.end_ns AND (n.family = 'gemm' OR regexp_matches(n.name, '(?i)reduce|generic'))
),
-- The first collective of a step also waits for the slowest rank, which no overlap hides: the span begins at its end.
step_spans AS (
    SELECT
        step, min(start_ns) FILTER (family = 'comm') AS first_ns,
        max(end_ns) FILTER (family = 'comm') - min(end_ns) FILTER (family = 'comm') AS span_ns,
        max(end_ns) FILTER (family = 'gemm') AS product_ns, count(*) FILTER (family = 'comm') AS collectives,
        sum(end_ns - start_ns) FILTER (family = 'comm') - min_by(end_ns - start_ns, start_ns) FILTER (family = 'comm')
            AS comm_ns
    FROM step_events
    GROUP BY step
),
late_steps AS (
    SELECT
        count(*) FILTER (first_ns >= product_ns) AS late_steps, count(*) AS steps, avg(collectives) AS collectives,
        avg(span_ns) AS span_ns, avg(comm_ns) AS comm_ns, avg(first_ns - product_ns) AS after_ns
    FROM step_spans
    WHERE collectives >= $min_collectives AND product_ns IS NOT NULL
    HAVING late_steps >= 0.75 * count(*) AND count(*) > 0
)
SELECT
    least(l.span_ns, greatest(t.busy_ns, t.wall_ns - t.busy_ns)) AS recoverable_ns,
    recoverable_ns / 3 AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    -- The loop is the cause of a part of the waits for launches, and easier to remove than the rest.
    l.comm_ns < l.span_ns / 2 AS is_host_loop,
    ['communication', 'small-buckets']
        || CASE WHEN is_host_loop AND l.span_ns >= $min_pct / 100 * t.wall_ns THEN ['launch-bound'] ELSE [] END
        AS explains,
    l.collectives, l.after_ns, l.late_steps, l.steps, l.span_ns, l.comm_ns
FROM late_steps AS l, _step_totals AS t
