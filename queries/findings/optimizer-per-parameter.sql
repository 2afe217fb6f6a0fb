/*
code = "NSI414"
title = "Parameters are updated one at a time"
family = "optimizer"
explains = ["late-host", "fusion"]
meaning = """
The update of each parameter tensor takes small kernels of its own. A fused optimizer, or a function over a list of
tensors, updates all of them in a few kernels."""
evidence = [
    [
        "{kernels:kernel} {per} in {tensors:group} of {kernels_each}, among them {operations}",
        "{kernels:kernel} {per} in {tensors:group} of {kernels_each}",
    ],
    "{?has_fused}a fused optimizer runs, too: these update something else, such as an average of the parameters",
    "they take {update_ns} of the step of {step_ns}",
]
skip_if = "The optimizer has no fused variant: then write it as one, or compile it."
effort = "flag"
numerics = "rounding"
estimate = """
The time of these kernels and of their launches on the host. A fused update takes a tenth of it. High: nine tenths.
Low: half of that, because the profiler makes a launch take up to twice as long."""
links = ["PyTorch documentation, torch.optim: foreach and fused implementations"]
report = "loop-iteration"
when = """
SELECT 1 FROM _steady_shapes
WHERE regexp_matches(name, '(?i)backward|_bwd|dgrad|wgrad') OR regexp_matches(name, 'addcdiv|addcmul|lerp')
    AND NOT regexp_matches(name, 'multi_tensor_apply|Functor_add|MulFunctor|FillFunctor')
LIMIT 1"""

[fix.optimizer]
any = "Update all tensors in one kernel: a fused or multi-tensor optimizer."
pytorch = "Create the optimizer with fused=True (or foreach=True): torch.optim.AdamW(params, fused=True)."
jax = "Put the optax update inside the jitted step."
cuda = "Update all tensors in one multi-tensor kernel, as in NVIDIA Apex."

[fix.list]
any = "Update all tensors in one kernel over a list of them, instead of in a loop."
pytorch = """
Replace the loop over the parameters by functions over lists: torch._foreach_mul_, _foreach_add_, _foreach_lerp_,
_foreach_zero_. An average of the parameters is torch.optim.swa_utils.AveragedModel with
multi_avg_fn=get_ema_multi_avg_fn(decay). An optimizer of your own can also be compiled:
torch.compile(optimizer.step)."""

[params]
min_tensors = [8, "Fewest tensors in a step (8: a fused optimizer of fewer saves little)"]
min_different = [0.1, """Share of the iterations with other grids than most, from which an unknown loop is one over the
    parameters (0.1: a model has tensors of several sizes; the steps of an algorithm have one)"""]
*/
WITH update_loops AS (
    SELECT
        o.loop, count(*) FILTER (o.kind = 'kernel') AS kernels_each,
        count(DISTINCT k.name) FILTER (regexp_matches(k.name, 'addcdiv|addcmul|lerp|sqrt')) AS marks,
        nullif(array_to_string(list_sort(list_distinct(list_filter(
            list(regexp_extract(k.name, 'addcdiv|addcmul|lerp|sqrt|Functor_add|MulFunctor')), lambda x: x <> ''
        ))), ', '), '') AS operations,
        -- Momentum: the buffer is multiplied and added to, and added to the parameter.
        count(DISTINCT regexp_extract(k.name, 'Functor_add|MulFunctor')) = 2
            AND bool_and(regexp_matches(k.name, 'Functor_add|MulFunctor')) AS is_momentum,
        bool_and(k.family IN ('elementwise', 'memory', 'copy/cast') OR o.kind <> 'kernel') AS is_elementwise
    FROM loop_operations AS o
    LEFT JOIN kernel_names AS k USING (name_id)
    GROUP BY o.loop
    HAVING is_elementwise
),
-- A loop over tensors of several sizes, in a program that trains.
list_loops AS (
    SELECT loop FROM loop_iterations
    WHERE loop IN (SELECT loop FROM update_loops)
        AND EXISTS (FROM _steady_shapes WHERE regexp_matches(name, '(?i)backward|_bwd|dgrad|wgrad'))
    GROUP BY loop HAVING avg(is_different::INTEGER) >= $min_different
),
fused_optimizers AS (
    SELECT count(*) > 0 AS has_fused FROM _steady_shapes
    WHERE regexp_matches(name, 'multi_tensor_apply') AND regexp_matches(name, 'Fused|Adam|SGD|LAMB|Pointwise|Lerp')
),
per_step AS (
    SELECT
        u.kernels_each, l.iterations / m.step_count AS tensors, u.kernels_each * tensors AS kernels,
        l.period_ns * tensors AS update_ns, u.operations, u.marks >= 2 OR u.is_momentum AS is_optimizer
    FROM update_loops AS u
    JOIN loops AS l USING (loop)
    CROSS JOIN (SELECT greatest(step_count, 1) AS step_count FROM step_method) AS m
    WHERE l.depth > 0 AND (is_optimizer OR l.loop IN (FROM list_loops))
    ORDER BY update_ns DESC
    LIMIT 1
)
SELECT
    least(0.9 * p.update_ns, 0.95 * t.wall_ns) AS recoverable_ns,
    0.45 * p.update_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    if(p.is_optimizer AND NOT f.has_fused, 'optimizer', 'list') AS cure_case, f.has_fused,
    p.kernels, p.tensors, p.kernels_each, p.operations, p.update_ns, t.wall_ns AS step_ns
FROM per_step AS p, _step_totals AS t, fused_optimizers AS f
WHERE t.has_steps AND p.tensors >= $min_tensors
