/*
code = "NSI519"
title = "Gradients are reduced after each micro-batch"
family = "accumulated-reductions"
explains = ["exposed-communication", "small-buckets"]
meaning = """
Gradients that are accumulated over several micro-batches have to be reduced once, before the optimizer. Here they are
reduced after each of them."""
evidence = [
    "{rounds:round} of {round_collectives:reduction} a step, in {found_steps} of {steps:step}, and then the optimizer",
    "they run for {collective_ns} a step, for {exposed_ns} of which the GPU runs nothing else",
]
caveat = """
The rounds reduce different gradients, as of two models that are trained in turn."""
effort = "line"
numerics = "rounding"
estimate = """
High: the time in which all rounds but one run, as reductions also slow down the kernels beside them. Low: the part of
it in which nothing else runs."""
links = ["PyTorch documentation, DistributedDataParallel: no_sync"]
report = "collectives"
when = """
SELECT 1 FROM kernel_names WHERE provenance = 'NCCL' AND regexp_matches(name, 'AllReduce|ReduceScatter') LIMIT 1"""

[cure]
any = "Reduce the gradients only after the last micro-batch of a step."
pytorch = """
Run all micro-batches but the last one inside `with model.no_sync():` (FSDP2: set_requires_gradient_sync(False);
Accelerate: accelerator.accumulate(model))."""
jax = "Sum the gradients of the micro-batches in a scan, and call psum once after it."

[params.least_factor]
default = 3.0
help = "Between rounds run this many times as many matrix products as between two reductions of a round (a choice)"

[params.least_products]
default = 4
help = "Fewest matrix products between rounds: a forward pass (a choice)"
*/
WITH events AS (
    SELECT
        s.step, k.start_ns, k.end_ns, n.family = 'gemm' AS is_product,
        n.family = 'comm' AND regexp_matches(n.name, '(AllReduce|ReduceScatter)_') AS is_reduction,
        regexp_matches(n.name, '(?i)multi_tensor|adam|sgd|lamb([^d]|$)|addcdiv|optimizer') AS is_optimizer
    FROM (SELECT process_id, start_ns, end_ns, name_id FROM kernel_events) AS k
    ASOF JOIN (FROM steps WHERE phase = 'steady') AS s ON s.process_id = k.process_id AND s.start_ns <= k.start_ns
    JOIN kernel_names AS n USING (name_id)
    WHERE k.start_ns < s.end_ns
),
counted_events AS (
    SELECT *, count(CASE WHEN is_product THEN 1 END) OVER (PARTITION BY step ORDER BY start_ns) AS products FROM events
),
reductions AS (
    SELECT
        step, start_ns, end_ns, products - lag(products) OVER (PARTITION BY step ORDER BY start_ns) AS products_before
    FROM counted_events
    WHERE is_reduction
),
usual_products AS (
    SELECT step, median(products_before) AS products FROM reductions GROUP BY step
),
optimizers AS (
    SELECT step, min(start_ns) AS start_ns FROM events WHERE is_optimizer GROUP BY step
),
rounds AS (
    SELECT
        r.step, count(*) AS collectives, sum(r.end_ns - r.start_ns) AS collective_ns,
        1 + count(*) FILTER (
            r.products_before >= $least_products AND r.products_before >= $least_factor * u.products
        ) AS rounds
    FROM reductions AS r
    JOIN usual_products AS u USING (step)
    JOIN optimizers AS o USING (step)
    GROUP BY r.step, o.start_ns
    HAVING max(r.start_ns) < o.start_ns
),
found_rounds AS (
    SELECT
        median(rounds) AS rounds, count(*) AS found_steps, avg(collectives) AS collectives,
        avg(collective_ns) AS collective_ns
    FROM rounds
    WHERE rounds > 1 AND collectives % rounds = 0 AND collectives > rounds
    HAVING count(*) > 0
)
SELECT
    f.collective_ns * (1 - 1 / f.rounds) AS recoverable_ns,
    e.exposed_ns / t.units * (1 - 1 / f.rounds) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    f.rounds, f.collectives / f.rounds AS round_collectives, f.found_steps, (SELECT count(*) FROM optimizers) AS steps,
    f.collective_ns, e.exposed_ns / t.units AS exposed_ns
FROM found_rounds AS f, _step_totals AS t,
    (
        SELECT sum(exposed_ns)::DOUBLE AS exposed_ns FROM _exposed_collectives
        WHERE operation IN ('AllReduce', 'ReduceScatter')
    ) AS e
WHERE t.has_steps AND f.found_steps >= 0.75 * (SELECT count(*) FROM optimizers)
