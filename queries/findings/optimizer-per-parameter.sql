/*
code = "NSI414"
title = "The optimizer updates one parameter at a time"
family = "optimizer"
explains = ["late-host", "fusion"]
meaning = """
The update of each parameter tensor takes several small kernels. A fused optimizer updates all tensors in a few
kernels."""
evidence = [
    "{kernels:kernel} {per} in {tensors:group} of {kernels_each}, among them {operations}",
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
WHERE regexp_matches(name, 'addcdiv|addcmul|lerp|Functor_add') AND NOT regexp_matches(name, 'multi_tensor_apply')
HAVING bool_or(name NOT LIKE '%Functor_add%')
    OR EXISTS (FROM _steady_shapes WHERE regexp_matches(name, '(?i)backward|_bwd|dgrad|wgrad'))"""

[fix]
any = "Update all tensors in one kernel: a fused or multi-tensor optimizer."
pytorch = "Create the optimizer with fused=True (or foreach=True): torch.optim.AdamW(params, fused=True)."
jax = "Put the optax update inside the jitted step."
cuda = "Update all tensors in one multi-tensor kernel, as in NVIDIA Apex."

[params]
min_tensors = [8, "Fewest tensors in a step (8: a fused optimizer of fewer saves little)"]
*/
WITH update_loops AS (
    SELECT
        o.loop, count(*) FILTER (o.kind = 'kernel') AS kernels_each,
        count(DISTINCT k.name) FILTER (regexp_matches(k.name, 'addcdiv|addcmul|lerp|sqrt')) AS marks,
        array_to_string(list_sort(list_distinct(list_filter(
            list(regexp_extract(k.name, 'addcdiv|addcmul|lerp|sqrt|Functor_add|MulFunctor')), lambda x: x <> ''
        ))), ', ') AS operations,
        -- Momentum: the buffer is multiplied and added to, and added to the parameter.
        count(DISTINCT regexp_extract(k.name, 'Functor_add|MulFunctor')) = 2
            AND bool_and(regexp_matches(k.name, 'Functor_add|MulFunctor')) AS is_momentum,
        bool_and(k.family IN ('elementwise', 'memory', 'copy/cast') OR o.kind <> 'kernel') AS is_elementwise
    FROM loop_operations AS o
    LEFT JOIN kernel_names AS k USING (name_id)
    GROUP BY o.loop
    HAVING (marks >= 2 OR is_momentum) AND is_elementwise
),
per_step AS (
    SELECT
        u.kernels_each, l.iterations / m.step_count AS tensors, u.kernels_each * tensors AS kernels,
        l.period_ns * tensors AS update_ns, u.operations
    FROM update_loops AS u
    JOIN loops AS l USING (loop)
    CROSS JOIN (SELECT greatest(step_count, 1) AS step_count FROM step_method) AS m
    WHERE l.depth > 0
    ORDER BY update_ns DESC
    LIMIT 1
)
SELECT
    least(0.9 * p.update_ns, 0.95 * t.wall_ns) AS recoverable_ns,
    0.45 * p.update_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    p.kernels, p.tensors, p.kernels_each, p.operations, p.update_ns, t.wall_ns AS step_ns
FROM per_step AS p, _step_totals AS t
WHERE t.has_steps AND p.tensors >= $min_tensors
