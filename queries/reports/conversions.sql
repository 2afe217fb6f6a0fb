/*
title = "Conversions: casts, layout changes and copies, and what asks for them"
topic = "kernels"
place = 8
question = "How much time goes to casts, layout conversions and copies, or to products without tensor cores?"
examples = ["", "--nvtx step"]
aliases = ["tax"]
main = ["kernel_time_pct", "total_ns", "calls", "work", "name", "next_name", "range_name"]
description = """
Kernels that compute nothing new, by their names: casts to another type, layout conversions (NCHW and NHWC,
transpositions), copies within the memory of the GPU made by kernels (contiguous, clone, cat), and matrix products and
convolutions that run in FP32 on CUDA cores. Fused kernels that also convert are not counted. next_name is the next
kernel on the same stream that computes, in most cases: usually the one that asks for the conversion. range_name is the
innermost NVTX range that launched most of them; # stands for numbers."""
reading = """
cast: keep weights and activations in the type in which the next kernel reads them (autocast casts weights in each
step: model.to(torch.bfloat16)). layout: channels_last for the model and its input. copy: write directly into the
result instead of cat, and look for .contiguous() after a transposition. cuda cores: TF32 or BF16, where the numerics
allow it."""
empty = "No kernel in this scope is a conversion, a copy or a product on CUDA cores by its name."

[columns]
work = "cast, layout, copy, or cuda cores"
name = "The kernel"
calls = "Executions of the kernel"
total_ns = "Sum of its durations"
avg_ns = "Mean duration"
kernel_time_pct = "total_ns as a share of all kernel time"
next_name = "The kernel for which it converts: the next one on its stream that computes, in most cases"
prior_name = "The last kernel before it on its stream that computes, in most cases"
range_name = "The innermost NVTX range that launched most of them; NULL outside all ranges"

[notes]
sum.text = "{works} of the kernel time"
sum.items.works = "{work} {kernel_time_pct}"
sum.query = """
SELECT list({'work': work, 'kernel_time_pct': total_pct} ORDER BY total_pct DESC, work) AS works
FROM (SELECT work, sum(kernel_time_pct) AS total_pct FROM answer GROUP BY work) HAVING count(*) > 0"""
*/
WITH works AS MATERIALIZED (
    SELECT name_id, name, work, coalesce(work = 'cuda cores', true) AS is_computing
    FROM (
        SELECT
            name_id, name,
            CASE
                WHEN family IN ('gemm', 'attention')
                    THEN CASE WHEN _precision_by_name(name, family) = 'fp32' THEN 'cuda cores' END
                WHEN regexp_matches(name, '(?i)^triton_|fused|_fusion') THEN NULL
                WHEN regexp_matches(name, '(?i)nchwToNhwc|nhwcToNchw|nhwcAddPadding|convertTensor|transpose')
                    THEN 'layout'
                WHEN regexp_matches(name, 'float(16|8_\w+)_copy_kernel_cuda|convert_dq_to_16bits|wrapped_convert')
                    THEN 'cast'
                WHEN regexp_matches(name, 'direct_copy_kernel_cuda.*(LoadWithCast|StoreWithCast)') THEN 'cast'
                WHEN name LIKE 'cupy_copy\_\_%' ESCAPE '\'
                    THEN CASE regexp_extract(name, '_([a-z0-9]+)$', 1)
                        WHEN regexp_extract(name, '__([a-z0-9]+)_', 1) THEN 'copy' ELSE 'cast'
                    END
                WHEN regexp_matches(name, 'direct_copy_kernel_cuda|CatArrayBatchedCopy|split_with_sizes_copy')
                    THEN 'copy'
            END AS work
        FROM kernel_names
    )
),
ordered_kernels AS (
    SELECT
        k.name_id, k.duration_ns, k.range_name,
        last_value(CASE WHEN w.is_computing THEN k.name_id END IGNORE NULLS) OVER (
            along ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS prior_id,
        first_value(CASE WHEN w.is_computing THEN k.name_id END IGNORE NULLS) OVER (
            along ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ) AS next_id
    FROM kernels_in_nvtx AS k JOIN works AS w USING (name_id)
    WINDOW along AS (PARTITION BY k.process_id, k.device_id, k.stream_id ORDER BY k.start_ns, k.correlation_id)
),
totals AS (
    SELECT
        k.name_id, w.name, w.work, count(*) AS calls, sum(k.duration_ns)::BIGINT AS total_ns,
        mode(k.next_id) AS next_id, mode(k.prior_id) AS prior_id, mode(folded_name(k.range_name)) AS range_name
    FROM ordered_kernels AS k JOIN works AS w ON w.name_id = k.name_id AND w.work IS NOT NULL
    GROUP BY ALL
)
SELECT
    t.work, t.name, t.calls, t.total_ns, t.total_ns / t.calls AS avg_ns,
    100.0 * t.total_ns / (SELECT sum(duration_ns) FROM kernels) AS kernel_time_pct,
    n.name AS next_name, p.name AS prior_name, t.range_name
FROM totals AS t
LEFT JOIN works AS n ON n.name_id = t.next_id
LEFT JOIN works AS p ON p.name_id = t.prior_id
ORDER BY t.total_ns DESC, t.work, t.name
