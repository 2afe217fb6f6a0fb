/*
code = "NSI413"
title = "Attention is written out as separate kernels"
family = "attention"
explains = ["kernel-time", "fusion"]
meaning = """
Two matrix products, with scale, mask and softmax between them, write and read the whole score matrix several times.
Fused attention keeps it on the chip."""
evidence = [
    """{chain_ns} {per} from one matrix product to the next, with up to {kernels} kernels between, a softmax among them,
    {layers:time} {per}""",
    "{gemm_ns} of it in the two products, {softmax_ns} in the softmax",
    "no fused attention kernel runs",
]
skip_if = "The scores themselves are an output, or the mask has a form that the fused kernel does not support."
effort = "line"
numerics = "rounding"
estimate = """
The time of the chain without that of the fused kernel, which is taken as a fifth (high; a tenth, if the products are in
FP32 without tensor cores, which it uses in 16 bits) to one and a half times (low) the time of the two products; at most
what the host leaves. And the idle time of the GPU before the launches that
are gone: all of it (high) or half (low)."""
links = ["PyTorch documentation, torch.nn.functional.scaled_dot_product_attention", "cuDNN documentation, Attention"]
report = "loop-iteration"
when = """
SELECT 1 FROM _steady_shapes
HAVING sum(kernel_time_pct) FILTER (family = 'softmax') >= $min_pct AND NOT bool_or(family = 'attention')"""

[fix]
any = "Use a fused attention kernel (FlashAttention, cuDNN) for the products, the mask and the softmax."
pytorch = """
Replace the products, mask and softmax by torch.nn.functional.scaled_dot_product_attention (is_causal=True for a
causal mask). Call nn.MultiheadAttention with need_weights=False. If the program calls it, this is its math backend,
which computes 16-bit inputs in FP32: a call within sdpa_kernel([SDPBackend.FLASH_ATTENTION]) warns what the fused
kernels do not support."""
jax = "Replace the products, mask and softmax by jax.nn.dot_product_attention(..., implementation=\"cudnn\")."
cuda = "Use cuDNN's fused attention (cudnn-frontend SDPA) or FlashAttention."
tensorrt = "Build the engine so that the attention layers match a fused MHA pattern."

[params]
min_pct = [3.0, "Share of the kernel time of softmax kernels from which it is looked for (3: less saves little)"]
max_between = [8, "Largest number of kernels between the products (8: scale, mask, dropout, casts and the softmax)"]
*/
WITH operations AS (
    SELECT
        o.loop, o.position, o.duration_ns, o.repeats, k.family, k.name,
        -- The nearest product before and after.
        max(CASE WHEN k.family = 'gemm' THEN o.position END)
            OVER (PARTITION BY o.loop ORDER BY o.position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS product,
        min(CASE WHEN k.family = 'gemm' THEN o.position END)
            OVER (PARTITION BY o.loop ORDER BY o.position ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
            AS next_product
    FROM loop_operations AS o LEFT JOIN kernel_names AS k USING (name_id) WHERE o.kind IN ('kernel', 'copy')
),
chains AS (
    SELECT
        s.loop, s.product, sum(o.duration_ns) AS chain_ns,
        count(*) FILTER (o.position > s.product AND o.position < s.next_product) AS kernels,
        sum(o.duration_ns) FILTER (o.family = 'gemm') AS gemm_ns, any_value(s.duration_ns) AS softmax_ns,
        any_value(s.name) AS softmax, bool_or(regexp_matches(o.name, 'sgemm|f32f32_f32f32_f32_')) AS is_fp32
    FROM operations AS s
    -- With the copies to another layout directly before and after it, and the four products of the backward pass.
    JOIN operations AS o ON o.loop = s.loop AND (
        o.position BETWEEN s.product AND s.next_product
        OR (o.family = 'copy/cast' OR o.family = 'gemm' AND contains(lower(s.name), 'backward'))
        AND o.position BETWEEN s.product - 2 AND s.next_product + 1
    )
    WHERE s.family = 'softmax' AND s.next_product - s.product - 1 <= $max_between AND s.repeats = 1
    GROUP BY s.loop, s.product
    -- A loss has a softmax between two products too, and so has the choice of experts or of the next token.
    HAVING NOT bool_or(
        o.position BETWEEN s.product AND s.next_product
        AND (
            o.family = 'sort/topk'
            OR regexp_matches(
                o.name,
                '(?i)nll_loss|log_?softmax|cross_?entropy|argmax|multinomial|fused_\w*_(?:log|gather|nll)_'
            )
        )
    )
),
per_step AS (
    SELECT
        sum(c.chain_ns * i.runs) AS chain_ns, sum(c.gemm_ns * i.runs) AS gemm_ns,
        sum(c.softmax_ns * i.runs) AS softmax_ns, max(c.kernels) AS kernels, sum(i.runs) AS layers,
        sum((c.kernels + 1) * i.runs) AS gone_launches,
        arg_max(c.softmax, c.softmax_ns) AS softmax, if(bool_and(c.is_fp32), 0.1, 0.2) AS fused_share
    FROM chains AS c
    JOIN (SELECT loop, iterations / (SELECT greatest(step_count, 1) FROM step_method) AS runs FROM loops) AS i
        USING (loop)
    HAVING count(*) > 0
),
gone_idle_time AS (
    SELECT t.idle_ns * least(1, s.gone_launches / nullif(t.launch_calls, 0)) AS idle_ns
    FROM per_step AS s, _step_totals AS t
)
SELECT
    least(s.chain_ns - s.fused_share * s.gemm_ns, limits.high_limit_ns) + coalesce(g.idle_ns, 0) AS recoverable_ns,
    least(s.chain_ns - 1.5 * s.gemm_ns, limits.low_limit_ns) + 0.5 * coalesce(g.idle_ns, 0) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    kernel_base_name(s.softmax) AS place,
    if(s.chain_ns - s.fused_share * s.gemm_ns > limits.high_limit_ns, 'the host', NULL) AS bounded_by,
    s.chain_ns, s.kernels, s.layers, s.gemm_ns, s.softmax_ns
FROM per_step AS s, _step_totals AS t, _step_limits AS limits, gone_idle_time AS g
WHERE t.has_steps AND s.chain_ns > 1.5 * s.gemm_ns AND saving_low_ns > 0
