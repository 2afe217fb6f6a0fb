/*
code = "NSI429"
title = "Gradients are clipped after each micro-batch"
family = "repeated-clipping"
explains = ["kernel-time"]
meaning = """
Gradients that are summed over several micro-batches have to be clipped once, before the optimizer. Each clipping reads
all gradients for their norm, and reads and writes them to scale them. Here it runs after each micro-batch, on a part of
the sum."""
evidence = [
    "gradients are clipped {rounds:time|times} between two updates of the parameters, in {found_updates:update}",
    [
        """{norms:kernel} for the norms and {scalings:kernel} that {#scalings:scales|scale} the gradients each time:
        {clip_ns}""",
        "{norms:kernel} for the norms each time: {clip_ns}",
    ],
    "{products:matrix product} {#products:runs|run} between two clippings",
]
skip_if = """
Each micro-batch must be bounded by itself, as in training with differential privacy; or the clippings are of different
models."""
effort = "line"
numerics = "rounding"
estimate = """
The time of all clippings but one for each update. Low: 80% of it, and at most what the host leaves."""
links = ["PyTorch documentation, Automatic Mixed Precision examples: gradient accumulation"]
report = "steps"
when = "SELECT 1 FROM kernel_constructs WHERE construct = 'norm of tensors' LIMIT 1"

[fix]
any = "Clip the gradients once for each update: after the last micro-batch, right before the optimizer's step."
pytorch = """
Call torch.nn.utils.clip_grad_norm_ once for each update: after the backward pass of the last micro-batch, right before
optimizer.step()."""
jax = """
Clip once for each update: put optax.clip_by_global_norm in the chain that optax.MultiSteps wraps, not around it."""

[params]
min_products = [4, "Fewest matrix products between two clippings: a forward and a backward pass (a choice)"]
min_norms = [8, "Fewest norms of single tensors that are a clipping (8: fewer may be numbers for a log)"]
min_pct = [1.0, "Share of the step from which they are reported (1: what runs differ by)"]
*/
WITH kinds AS (
    SELECT
        n.name_id, contains(n.name, 'multi_tensor_apply') AS is_of_list, CASE
            WHEN n.family = 'gemm' THEN 'product'
            WHEN c.construct = 'norm of tensors' THEN 'norm'
            WHEN is_of_list AND regexp_matches(n.name, '::BinaryOpScalarTensorFunctor|ScaleFunctor') THEN 'scaling'
            WHEN c.construct IN ('fused Adam', 'fused SGD', 'Adam update of one tensor')
                OR is_of_list AND regexp_matches(n.name, 'PointwiseOp|TernaryOp|BinaryOpListAlpha') THEN 'update'
        END AS kind
    FROM kernel_names AS n LEFT JOIN kernel_constructs AS c USING (name_id)
),
-- A step may be a micro-batch: then the updates are not in the steps.
events AS (
    SELECT
        k.*, n.kind, n.is_of_list, coalesce(k.start_ns < s.end_ns, false) AS is_in_step,
        lag(nullif(n.kind, 'scaling') IGNORE NULLS)
            OVER (PARTITION BY k.process_id, k.device_id ORDER BY k.start_ns) AS previous
    FROM (SELECT process_id, device_id, start_ns, duration_ns, name_id FROM kernel_events) AS k
    ASOF LEFT JOIN _steady_windows AS s ON s.process_id = k.process_id AND s.start_ns <= k.start_ns
    JOIN kinds AS n ON n.name_id = k.name_id AND n.kind IS NOT NULL
),
numbered_events AS (
    SELECT
        *, count(CASE WHEN kind = 'norm' AND previous = 'product' THEN 1 END) OVER along AS round,
        count(CASE WHEN kind = 'update' AND previous <> 'update' THEN 1 END) OVER along AS update
    FROM events
    WINDOW along AS (PARTITION BY process_id, device_id ORDER BY start_ns)
),
rounds AS (
    SELECT
        process_id, device_id, round, min(update) AS update, count(*) FILTER (kind = 'norm') AS norms,
        count(*) FILTER (kind = 'scaling' AND previous = 'norm') AS scalings,
        lag(count(*) FILTER (kind = 'product')) OVER (PARTITION BY process_id, device_id ORDER BY round) AS products,
        scalings > 0 AND bool_or(kind = 'norm' AND is_of_list) OR norms >= $min_norms AS is_clipping,
        sum(duration_ns) FILTER (kind = 'norm' OR kind = 'scaling' AND previous = 'norm')::DOUBLE AS clip_ns,
        bool_or(kind = 'norm' AND is_in_step) AS is_in_step
    FROM numbered_events
    GROUP BY process_id, device_id, round
),
-- What comes before the first update and after the last one may be a part of what belongs to an update.
updates AS (
    SELECT
        count(*) AS rounds, min(norms) AS norms, min(scalings) AS scalings, min(products) AS products,
        avg(clip_ns) AS clip_ns, bool_and(is_clipping) AND min(norms) = max(norms) AS is_clipped
    FROM rounds
    WHERE round > 0 AND update BETWEEN 1 AND (SELECT max(update) FROM numbered_events) - 1
    GROUP BY process_id, device_id, update
)
SELECT
    any_value(s.clips / t.units) * avg(u.clip_ns) * (1 - 1 / min(u.rounds)) AS clipping_ns,
    least(clipping_ns, any_value(limits.high_limit_ns)) AS recoverable_ns,
    least(0.8 * clipping_ns, any_value(limits.low_limit_ns)) AS saving_low_ns,
    100 * recoverable_ns / any_value(t.wall_ns) AS wall_pct, NULL AS place,
    CASE WHEN clipping_ns > recoverable_ns THEN 'the host' END AS bounded_by,
    min(u.rounds) AS rounds, count(*) AS found_updates, min(u.norms) AS norms, nullif(min(u.scalings), 0) AS scalings,
    min(u.products) AS products, avg(u.clip_ns) AS clip_ns
FROM updates AS u, _step_totals AS t, _step_limits AS limits,
    (SELECT count(*) AS clips FROM rounds WHERE round > 0 AND is_in_step) AS s
HAVING bool_and(t.has_steps AND u.is_clipped) AND min(u.rounds) > 1 AND min(u.rounds) = max(u.rounds)
    AND min(u.products) >= $min_products AND wall_pct >= $min_pct
