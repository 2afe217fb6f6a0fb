/*
code = "NSI428"
title = "The same gradients of weights are computed before two updates"
family = "unused-gradients"
explains = ["kernel-time", "small-grid", "one-block"]
meaning = """
Each step has two updates of parameters, and the backward pass before each goes through the same layers. An optimizer
changes the parameters of its own network only: gradients of the other network are computed and never used."""
evidence = [
    """{shared:launch|launches} {per} of gradients of a convolution's weights run before both updates, with equal
    kernels and grids: {share_pct} of those before the update with {blocks:block}, {other_share_pct} of those before the
    one with {other_blocks:block}""",
    "they take {shared_ns} before one update, with the rest of the backward pass that both have {backward_ns}",
]
skip_if = "Both optimizers change these layers, or two networks have layers of the same sizes."
effort = "line"
estimate = """
Low: the time of these gradients before one update. High: with all other kernels of the backward pass that run before
both: a gradient that leads to no weight that is updated is not needed either."""
links = [
    "PyTorch documentation, torch.Tensor.detach",
    "PyTorch documentation, Autograd mechanics: Setting requires_grad",
]
report = "steps"
when = """
SELECT 1 FROM _steady_shapes
WHERE regexp_matches(name, 'multi_tensor_apply.*(?:FusedOptimizer|PointwiseOp|Adam)')
HAVING count(DISTINCT grid) >= 2 AND EXISTS (FROM _steady_shapes WHERE name LIKE '%wgrad%')"""

[fix]
any = """
Compute only the gradients that the next update uses: cut the graph where the output of a network comes in that this
update does not change, and freeze a network that gradients only pass through."""
pytorch = """
Compute only the gradients that the next update uses. Where a network gets the output of another one that this update
does not change: output.detach(), or torch.no_grad() around the other network. Where gradients only pass through a
network: requires_grad_(False) meanwhile."""

[params]
min_shared = [4, "Fewest launches per step that both have (4: a few layers may have equal sizes by chance)"]
min_share = [0.9,
    "Share of the weights' gradients before one update that also run before the other (0.9: its whole backward pass)"]
*/
WITH names AS (
    SELECT
        name_id, regexp_matches(name, 'multi_tensor_apply.*(?:FusedOptimizer|PointwiseOp|Adam)') AS is_update,
        name LIKE '%wgrad%' AND name NOT LIKE '%init_device%' AS is_weight
    FROM kernel_names
    WHERE is_update OR regexp_matches(name, '(?i)[dw]grad|backward|batchnorm_bw|bprop|_bwd')
),
runs AS MATERIALIZED (
    SELECT
        k.process_id, k.start_ns, k.name_id, concat_ws('x', k.grid_x, k.grid_y, k.grid_z) AS grid, k.grid_x,
        k.duration_ns, n.is_update, n.is_weight
    FROM kernel_events AS k
    JOIN names AS n USING (name_id)
    ASOF JOIN _steady_windows AS w ON w.process_id = k.process_id AND w.start_ns <= k.start_ns
    WHERE k.start_ns < w.end_ns
),
-- An optimizer is known by the grid of its first kernel, which grows with its parameters.
shapes AS (
    SELECT
        u.name_id AS update_id, u.grid_x AS blocks, r.name_id, r.grid, any_value(r.is_weight) AS is_weight,
        count(DISTINCT u.start_ns) AS updates, count(*) AS calls, sum(r.duration_ns)::DOUBLE AS total_ns
    FROM (FROM runs WHERE NOT is_update) AS r
    ASOF JOIN (FROM runs WHERE is_update) AS u ON u.process_id = r.process_id AND u.start_ns >= r.start_ns
    GROUP BY ALL
),
totals AS (
    SELECT update_id, blocks, max(updates) AS updates, sum(calls) AS calls FROM shapes WHERE is_weight GROUP BY ALL
),
pairs AS (
    SELECT
        a.update_id, a.blocks, b.blocks AS other_blocks,
        sum(least(a.calls, b.calls)) FILTER (a.is_weight) AS shared,
        sum(least(a.total_ns, b.total_ns)) FILTER (a.is_weight) AS shared_ns,
        sum(least(a.total_ns, b.total_ns)) AS backward_ns
    FROM shapes AS a JOIN shapes AS b USING (update_id, name_id, grid)
    WHERE a.blocks <> b.blocks
    GROUP BY ALL
)
SELECT
    p.backward_ns / t.units AS recoverable_ns, p.shared_ns / t.units AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct, NULL AS place,
    p.shared / t.units AS shared, 100 * p.shared / a.calls AS share_pct, 100 * p.shared / b.calls AS other_share_pct,
    p.blocks, p.other_blocks, saving_low_ns AS shared_ns, recoverable_ns AS backward_ns
FROM pairs AS p
JOIN totals AS a USING (update_id, blocks)
JOIN totals AS b ON b.update_id = p.update_id AND b.blocks = p.other_blocks
CROSS JOIN _step_totals AS t
-- Each step has both updates: an optimizer that sometimes leaves out layers has one in each step.
WHERE t.has_steps AND p.shared >= $min_share * a.calls AND p.shared >= $min_shared * t.units
    AND least(a.updates, b.updates) >= 0.9 * (SELECT count(*) FROM _steady_windows)
ORDER BY recoverable_ns DESC, p.blocks
LIMIT 1
