/*
code = "NSI519"
title = "Gradients are reduced after each micro-batch"
family = "accumulated-reductions"
explains = ["communication", "small-buckets"]
meaning = """
Gradients that are accumulated over several micro-batches have to be reduced once, before the optimizer. Here they are
reduced after each of them."""
evidence = [
    "in {found_updates} of {updates:update}, {rounds:round} of {round_collectives:reduction} come before the optimizer",
    "the reductions run for {collective_ns} {per}, and the GPU runs nothing else for {exposed_ns} of that",
]
skip_if = "The rounds reduce different gradients, as of two models that are trained in turn."
effort = "line"
numerics = "rounding"
estimate = """
High: the time in which all rounds but one run, as reductions also slow down the kernels beside them. Low: the part of
it in which nothing else runs."""
links = ["PyTorch documentation, DistributedDataParallel: no_sync"]
report = "collectives"
when = """
SELECT 1 FROM kernel_names WHERE provenance = 'NCCL' AND regexp_matches(name, 'AllReduce|ReduceScatter') LIMIT 1"""

[fix]
any = "Reduce the gradients only after the last micro-batch of a step."
pytorch = """
Run all micro-batches but the last one inside `with model.no_sync():` (FSDP2: set_requires_gradient_sync(False);
Accelerate: accelerator.accumulate(model))."""
jax = "Sum the gradients of the micro-batches in a scan, and call psum once after it."

[params]
min_factor = [3.0,
    "Between rounds run this many times as many matrix products as between two reductions of a round (a choice)"]
min_products = [4, "Fewest matrix products between rounds: a forward pass (a choice)"]
*/
WITH events AS (
    SELECT
        k.process_id, k.start_ns, k.end_ns, n.family = 'gemm' AS is_product,
        n.family = 'comm' AND regexp_matches(n.name, '(AllReduce|ReduceScatter)_') AS is_reduction,
        regexp_matches(n.name, '(?i)multi_tensor|adam|sgd|lamb([^d]|$)|addcdiv|optimizer') AS is_optimizer
    FROM (SELECT process_id, start_ns, end_ns, name_id FROM kernel_events) AS k
    ASOF JOIN _steady_windows AS s ON s.process_id = k.process_id AND s.start_ns <= k.start_ns
    JOIN kernel_names AS n USING (name_id)
    WHERE k.start_ns < s.end_ns AND (is_product OR is_reduction OR is_optimizer)
),
-- A step may be a micro-batch, so an update is what runs up to the first kernel of the optimizer.
bounded_events AS (
    SELECT *, is_optimizer AND NOT coalesce(lag(is_optimizer) OVER along, false) AS ends_update
    FROM events
    WINDOW along AS (PARTITION BY process_id ORDER BY start_ns)
),
counted_events AS (
    SELECT
        *, count(CASE WHEN is_product THEN 1 END) OVER along AS products,
        count(CASE WHEN ends_update THEN 1 END) OVER along AS update
    FROM bounded_events
    WINDOW along AS (PARTITION BY process_id ORDER BY start_ns)
),
-- A reduction before the first product of an update is of something else: the loss, the norm of the gradients.
reductions AS (
    SELECT
        process_id, update,
        products - lag(products) OVER (PARTITION BY process_id, update ORDER BY start_ns) AS distance
    FROM (SELECT *, min(products) OVER (PARTITION BY process_id, update) AS first_products FROM counted_events)
    WHERE is_reduction AND products > first_products
),
updates AS (
    SELECT
        r.process_id, r.update, count(*) AS collectives,
        1 + count(*) FILTER (r.distance >= $min_products AND r.distance >= $min_factor * u.usual) AS rounds
    FROM reductions AS r
    JOIN (SELECT process_id, update, median(distance) AS usual FROM reductions GROUP BY ALL) AS u
        USING (process_id, update)
    SEMI JOIN counted_events AS o ON o.ends_update AND o.process_id = r.process_id AND o.update = r.update + 1
    GROUP BY ALL
),
found_rounds AS (
    SELECT
        median(rounds) AS rounds, count(*) AS found_updates, median(collectives) // median(rounds) AS round_collectives
    FROM updates
    WHERE rounds > 1 AND collectives > rounds AND collectives % rounds = 0
)
SELECT
    c.collective_ns / t.units * (1 - 1 / f.rounds) AS recoverable_ns,
    e.exposed_ns / t.units * (1 - 1 / f.rounds) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct, NULL AS place,
    f.rounds, f.round_collectives, f.found_updates, u.updates,
    c.collective_ns / t.units AS collective_ns, e.exposed_ns / t.units AS exposed_ns
FROM found_rounds AS f, _step_totals AS t, (SELECT count(*) AS updates FROM updates) AS u,
    (SELECT sum(end_ns - start_ns)::DOUBLE AS collective_ns FROM events WHERE is_reduction) AS c,
    (
        SELECT sum(exposed_ns)::DOUBLE AS exposed_ns FROM _exposed_collectives
        WHERE operation IN ('AllReduce', 'ReduceScatter')
    ) AS e
WHERE t.has_steps AND f.found_updates >= 0.75 * u.updates AND f.rounds > 1
