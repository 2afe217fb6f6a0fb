/*
description = "One row per launch and precision: the operations that ncu counted, a multiply-add as two."
[columns]
launch = "The launch, in `ncu_launches`"
precision = "fp64, fp32, fp16_vector: ordinary arithmetic; fp64_tensor, tf32, fp16 (bf16 too), fp8, int8: tensor cores"
may_be_moves = """Whether the operations may not be arithmetic: compilers fill registers by HFMA2 on zeros, which counts
    as a multiply-add"""
flop_count = "Operations that were executed, including those on tile padding"
*/
-- ncu counts multiply-adds of ordinary arithmetic by instruction (per cycle, in most sets), and operations of tensor
-- cores by type. Instructions on pairs of halves count twice. If a count and its components were collected (src_fp16,
-- src_fp16_dst_fp32), only the total count is used.
WITH cycles AS (
    SELECT launch, max(value) AS cycles FROM raw.ncu_metrics WHERE metric = 'smsp__cycles_elapsed.avg' GROUP BY launch
),
instruction_counts AS (
    SELECT
        launch,
        regexp_extract(metric, '_op_([dfh])(?:add|mul|fma)_pred_on', 1) AS kind,
        regexp_extract(metric, '_op_[dfh](add|mul|fma)_pred_on', 1) AS operation,
        coalesce(
            max(value) FILTER (metric LIKE '%.sum'),
            max(value * cycles) FILTER (metric LIKE '%.per\_cycle\_elapsed' ESCAPE '\')
        ) AS threads
    FROM raw.ncu_metrics
    LEFT JOIN cycles USING (launch)
    WHERE regexp_matches(
        metric, '^smsp__sass_thread_inst_executed_op_[dfh](add|mul|fma)_pred_on\.sum(\.per_cycle_elapsed)?$'
    )
    GROUP BY ALL
),
tensor_counts AS (
    SELECT
        launch, regexp_extract(metric, '^sm__ops_path_tensor_(src_\w+)\.sum$', 1) AS stem,
        split_part(stem, '_', 2) AS source, value
    FROM raw.ncu_metrics
    WHERE regexp_matches(metric, '^sm__ops_path_tensor_src_\w+\.sum$') AND value IS NOT NULL
),
tensor_totals AS (
    FROM tensor_counts AS t
    WHERE NOT EXISTS (
        FROM tensor_counts AS o WHERE o.launch = t.launch AND t.stem LIKE replace(o.stem, '_', '\_') || '\_%' ESCAPE '\'
    )
)
SELECT
    launch,
    CASE kind WHEN 'd' THEN 'fp64' WHEN 'f' THEN 'fp32' ELSE 'fp16_vector' END AS precision,
    kind = 'h' AND sum(threads) FILTER (operation <> 'fma') IS NOT DISTINCT FROM 0 AS may_be_moves,
    round(
        sum(threads * CASE operation WHEN 'fma' THEN 2 ELSE 1 END * CASE kind WHEN 'h' THEN 2 ELSE 1 END)
    ) AS flop_count
FROM instruction_counts
WHERE threads IS NOT NULL
GROUP BY launch, kind
UNION ALL
SELECT
    launch, CASE source WHEN 'fp64' THEN 'fp64_tensor' WHEN 'bf16' THEN 'fp16' WHEN 'fp6' THEN 'fp8' ELSE source END,
    false, sum(value)
FROM tensor_totals
GROUP BY ALL;
