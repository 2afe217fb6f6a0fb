/*
code = "NSI417"
title = "Operands of matrix products are converted to 16 bits in each step"
family = "casts"
meaning = """
The weights are stored in FP32, and each forward pass converts them again. That reads four bytes and writes two for each
weight, and launches a kernel for each tensor."""
evidence = [
    "{casts:conversion} {per} of {cast_ns} ({cast_pct} of kernel time), directly before {products:product}",
    "they are {launch_pct} of the launches",
    "no kernel of a backward pass runs",
]
skip_if = "The model is also trained, so that it needs FP32 weights; or some layers need FP32."
effort = "line"
numerics = "precision"
estimate = """
The time of the conversions on the GPU (60 to 150%: activations also get half of the bytes), weighted with the share in
which it is busy, and 25 to 75% of their share of the launches in its idle time: the profiler makes a launch take up to
twice as long."""
links = ["PyTorch documentation, Automatic Mixed Precision package: torch.amp"]
report = "loop-iteration"
# The operands of a product are converted in a row: one step shows this without a search for loops.
when = """
SELECT 1 FROM _steady_shapes
HAVING bool_or(name LIKE '%float16_copy_kernel_cuda%')
    AND NOT bool_or(regexp_matches(name, '(?i)backward|_bwd|bprop|dgrad|wgrad|addcdiv|multi_tensor_apply'))
    AND (SELECT busy_ns > 0.1 * wall_ns FROM _step_totals)"""

[fix]
any = "Convert the weights to 16 bits once, before the loop."
pytorch = """
Convert the model once, model.to(torch.bfloat16) or model.half(), and leave out torch.autocast; or put several forward
passes under one torch.autocast, which keeps the converted weights until it ends."""

[params]
min_products = [2, "Fewest products in a step whose operands are converted (2: a single one may be the last layer)"]
*/
WITH operations AS (
    SELECT
        o.loop, o.repeats, o.duration_ns, k.name,
        lead(k.family) OVER (PARTITION BY o.loop ORDER BY o.position) AS next_family
    FROM loop_operations AS o
    LEFT JOIN kernel_names AS k USING (name_id)
    WHERE o.kind IN ('kernel', 'loop')
),
-- A product converts input, weight and bias in a row. A single conversion may be that of an activation.
per_step AS (
    SELECT
        sum(o.repeats * l.runs) AS casts, sum(o.duration_ns * l.runs) AS cast_ns, sum(l.runs) AS products,
        any_value(o.name) AS name
    FROM operations AS o
    JOIN (
        SELECT loop, iterations / (SELECT greatest(step_count, 1) FROM step_method) AS runs FROM loops
    ) AS l USING (loop)
    WHERE o.name LIKE '%float16_copy_kernel_cuda%' AND o.repeats >= 2 AND o.next_family = 'gemm'
    HAVING sum(l.runs) >= $min_products
)
SELECT
    1.5 * c.cast_ns * t.busy_ns / t.wall_ns + 0.75 * t.idle_ns * c.casts / t.launch_calls AS recoverable_ns,
    0.6 * c.cast_ns * t.busy_ns / t.wall_ns + 0.25 * t.idle_ns * c.casts / t.launch_calls AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    regexp_extract(c.name, 'b?float16_copy_kernel_cuda') AS place,
    c.casts, c.products, c.cast_ns,
    100 * c.cast_ns / t.kernel_ns AS cast_pct,
    100 * c.casts / t.launch_calls AS launch_pct,
    -- Where they are a large part of the launches, a line removes that part of the overhead.
    CASE WHEN c.casts >= 0.4 * t.launch_calls THEN ['late-host', 'fusion'] ELSE [] END AS explains
FROM per_step AS c, _step_totals AS t
WHERE t.has_steps AND c.casts < t.launch_calls
    -- Two conversions in a row in the first steady step.
    AND EXISTS (
        SELECT k.name_id, lead(k.name_id) OVER (ORDER BY k.correlation_id, k.start_ns) AS next_name_id
        FROM kernel_events AS k
        JOIN (FROM steps WHERE phase = 'steady' ORDER BY step LIMIT 1) AS s
            ON s.process_id = k.process_id AND k.start_ns >= s.start_ns AND k.start_ns < s.end_ns
        QUALIFY k.name_id = next_name_id
            AND k.name_id IN (SELECT name_id FROM kernel_names WHERE name LIKE '%float16_copy_kernel_cuda%')
    )
