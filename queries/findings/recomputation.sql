/*
code = "NSI425"
title = "Forward kernels run again in the backward pass"
family = "recomputation"
explains = ["fusion", "kernel-time"]
meaning = """
Activation checkpointing keeps only the inputs of a block, and computes its activations a second time when the backward
pass needs them. That saves memory and costs time."""
evidence = [
    """of {all_calls:launch|launches} of {operation} ({kernel}) in the trace, {again_calls} come from the thread of the
    backward pass""",
    "with the other kernels of a forward pass that it launches, up to {recoverable_ns}, {wall_pct} of the step",
]
skip_if = "The activations of these blocks do not fit into the GPU's memory, or an operation recomputes its own."
effort = "line"
estimate = """
High: the time of kernels of the backward pass's thread that a thread without gradients launches as well, in the same
size and as often. Low: half of it, as the backward pass may need some of them too."""
links = ["PyTorch documentation, torch.utils.checkpoint"]
report = "top"
# Without recomputation, each forward kernel of a layer runs once for its gradient; evaluations add more. Only then are
# launches looked up.
when = """
SELECT 1 FROM (
    SELECT
        sum(calls) FILTER (regexp_matches(name, 'sdpa\\w*_fprop|\\bflash_fwd_|fmha_cutlassF')) AS attention,
        sum(calls) FILTER (regexp_matches(name, 'sdpa\\w*_bprop|\\bflash_bwd_dq|fmha_cutlassB')) AS attention_gradient,
        sum(calls) FILTER (regexp_matches(name, 'vectorized_(?:layer|rms)_norm_kernel')) AS norm,
        sum(calls) FILTER (name LIKE '%layer_norm_grad_input_kernel%') AS norm_gradient
    FROM _steady_shapes
)
WHERE (attention >= $min_ratio * attention_gradient OR norm >= $min_ratio * norm_gradient)
    AND EXISTS (FROM frameworks WHERE framework IN ('pytorch', 'inductor') AND is_program)"""

[fix]
any = "Keep the activations where the memory suffices: recompute no block, or only as many as must be."
pytorch = """
Remove torch.utils.checkpoint (gradient checkpointing, activation recomputation) where the memory suffices; else
checkpoint fewer blocks, or only their cheap operations (selective checkpointing)."""

[params]
min_ratio = [1.4, "Least ratio of forward kernels and gradients of one layer (1.4: half of the blocks are recomputed)"]
*/
WITH forward_names AS (
    SELECT name_id FROM kernel_names
    WHERE regexp_matches(name, 'sdpa\w*_fprop|\bflash_fwd_|fmha_cutlassF|vectorized_(?:layer|rms)_norm_kernel')
),
gradient_names AS (
    SELECT name_id FROM kernel_names
    WHERE regexp_matches(name, 'sdpa\w*_bprop|\bflash_bwd_dq|fmha_cutlassB|layer_norm_grad_input_kernel')
),
kernel_launches AS MATERIALIZED (
    SELECT
        l.process_id, l.thread_id, k.name_id, k.grid_x, k.grid_y, k.grid_z, k.block_x, k.duration_ns,
        w.process_id IS NOT NULL AND k.start_ns < w.end_ns AS is_in_steps
    FROM launches AS l
    JOIN kernel_events AS k USING (process_id, correlation_id, start_ns, name_id)
    ASOF LEFT JOIN _steady_windows AS w ON w.process_id = k.process_id AND w.start_ns <= k.start_ns
    WHERE l.call_group = 'launch'
),
threads AS (
    SELECT process_id, thread_id, bool_or(name_id IN (FROM gradient_names)) AS has_gradients
    FROM kernel_launches GROUP BY ALL
),
-- Kernels that both kinds of threads launch: PyTorch launches the backward pass of a GPU from a thread of its own. What
-- one launches more often than the other is not repeated.
repeated AS (
    SELECT
        l.name_id, l.name_id IN (FROM forward_names) AS is_forward,
        count(*) FILTER (t.has_gradients) AS again, count(*) FILTER (NOT t.has_gradients) AS first,
        sum(l.duration_ns) FILTER (t.has_gradients AND l.is_in_steps) * least(1, first / again) AS again_ns
    FROM kernel_launches AS l JOIN threads AS t USING (process_id, thread_id)
    GROUP BY l.name_id, l.grid_x, l.grid_y, l.grid_z, l.block_x
    HAVING again > 0 AND first > 0
),
largest AS (
    SELECT name_id, sum(again) AS again_calls, sum(again + first) AS all_calls
    FROM repeated WHERE is_forward
    GROUP BY name_id ORDER BY sum(again_ns) DESC NULLS LAST, name_id LIMIT 1
)
SELECT
    least(r.again_ns / t.units, t.wall_ns) AS recoverable_ns,
    recoverable_ns / 2 AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct, NULL AS place,
    CASE WHEN n.name LIKE '%norm_kernel%' THEN 'normalization' ELSE 'forward attention' END AS operation,
    kernel_base_name(n.name) AS kernel, l.again_calls, l.all_calls
FROM largest AS l
JOIN kernel_names AS n USING (name_id)
CROSS JOIN (SELECT sum(again_ns) AS again_ns FROM repeated) AS r
CROSS JOIN _step_totals AS t
WHERE t.has_steps AND 3 * l.again_calls >= l.all_calls - l.again_calls
