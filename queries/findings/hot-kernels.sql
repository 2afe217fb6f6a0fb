/*
title = "A few kernels are hot"
family = "kernels"
overlaps = true
meaning = """
The GPU is busy with these kernels whatever the host does; the run cannot become shorter than they are."""
action = """
Profile them: nsys-insight ncu plan writes the command; ncu import and headroom show how far they are from their
roof."""
caveat = """
The roof is already reached, and all of the work is needed."""
report = "classify-kernels"
when = """
SELECT 1 FROM classify_report WHERE part = 'wall' AND verdict = 'GPU-bound'
UNION ALL
SELECT 1 FROM _steady_shapes WHERE family IS DISTINCT FROM 'comm'
GROUP BY name HAVING 100 * sum(total_ns) / (SELECT sum(time_ns)::DOUBLE FROM step_budget) >= $least_pct"""

[params.least_pct]
default = 10.0
help = """\
Share of the wall time from which a kernel is named; of a GPU-bound run, the first three are named in any case (10: \
what a cause needs to bound a step)"""

[params.little_pct]
default = 1.0
help = "Share of the wall time below which a kernel is not named (1: what runs differ by)"

[params.short_ns]
default = 10000
help = "A latency-bound kernel that is shorter has too little work (twice the launch cost of classify-kernels)"

[params.near_pct]
default = 85.0
help = "Share of the nearer roof from which a kernel is near it"
*/
WITH wall_total AS (
    SELECT
        sum(time_ns)::DOUBLE AS all_ns,
        count(DISTINCT (step, gpu_id))
            * any_value(CASE WHEN step IS NULL THEN 1 ELSE (SELECT tokens_per_step FROM step_method) END) AS gpu_tokens
    FROM step_budget
),
-- The bound of a kernel and the ncu measurements belong to one launch shape: here the shape in which it spends most
-- time.
shapes AS (
    SELECT
        s.*, b.bound, b.evidence, b.reason, h.ceiling, h.ceiling_used_pct,
        coalesce(
            h.ceiling_used_pct, CASE WHEN b.evidence = 'gpu_metrics' THEN greatest(b.sm_pct, b.memory_pct) END
        ) AS near_pct,
        s.total_ns * h.recoverable_ns / h.total_ns AS recoverable_ns
    FROM _steady_shapes AS s
    LEFT JOIN (
        FROM classify_kernels_report
        QUALIFY row_number() OVER (PARTITION BY name, grid, block ORDER BY total_ns DESC, bound) = 1
    ) AS b USING (name, grid, block)
    LEFT JOIN headroom_report AS h USING (name, grid, block)
    WHERE s.family IS DISTINCT FROM 'comm'
),
kernel_totals AS (
    SELECT
        s.name, any_value(s.family) AS family, sum(s.calls) AS calls, sum(s.total_ns) AS total_ns,
        sum(s.total_ns) / sum(s.calls) AS avg_ns, sum(s.recoverable_ns) AS recoverable_ns,
        least(100 * sum(s.total_ns) / any_value(w.all_ns), 100) AS wall_pct, sum(s.kernel_time_pct) AS kernel_time_pct,
        unnest(
            max_by(
                {
                    bound: bound, evidence: evidence, reason: reason, ceiling: ceiling, used_pct: ceiling_used_pct,
                    near_pct: near_pct
                },
                (s.total_ns, s.grid, s.block)
            )
        )
    FROM shapes AS s, wall_total AS w
    GROUP BY s.name
),
hot_kernels AS (
    SELECT *, row_number() OVER (ORDER BY total_ns DESC, name) AS turn, kernel_base_name(name) AS short_name
    FROM kernel_totals
    -- The first kernel is named in any case.
    QUALIFY wall_pct >= $least_pct
        OR (turn = 1 OR turn <= 3 AND wall_pct >= $little_pct)
        AND EXISTS (FROM classify_report WHERE part = 'wall' AND verdict = 'GPU-bound')
),
kernel_sentences AS (
    SELECT
        turn,
        short_name || ': ' || share_text(wall_pct) || ' of the wall time, ' || share_text(kernel_time_pct)
            || ' of kernel time, '
            || counted_text(calls / w.gpu_tokens, 'call') || ' of ' || time_text(total_ns / calls) || ' ' || $per
            || '; '
            || CASE
                WHEN coalesce(bound, 'unknown') = 'unknown' THEN 'what bounds it was not measured'
                ELSE CASE bound
                    WHEN 'balanced' THEN 'near the peak of both memory and arithmetic by ' ELSE bound || '-bound by '
                END
                    || CASE evidence
                        WHEN 'gpu_metrics' THEN 'GPU metrics'
                        WHEN 'name' THEN 'its name'
                        WHEN 'launch shape' THEN 'its launch shape'
                        ELSE evidence
                    END
                    || ' (' || reason || ')'
            END
            || CASE
                WHEN used_pct IS NOT NULL
                    THEN '; ' || share_text(used_pct) || ' of what ' || replace(ceiling, 'SM', 'the SMs')
                        || ' can deliver'
                ELSE ''
            END AS sentence
    FROM hot_kernels, wall_total AS w
)
SELECT
    CASE WHEN w.has_saving THEN sum(h.recoverable_ns) / any_value(w.gpu_tokens) END AS recoverable_ns,
    least(sum(CASE WHEN w.has_saving THEN 100 * h.recoverable_ns / w.all_ns ELSE h.wall_pct END), 100) AS wall_pct,
    CASE count(*) WHEN 1 THEN 'One kernel is hot' END AS title,
    NULL AS place,
    (SELECT string_agg(sentence, '. ' ORDER BY turn) FROM kernel_sentences WHERE turn <= 3)
        || CASE WHEN count(*) > 3 THEN '. And ' || count(*) - 3 || ' more' ELSE '' END
        || CASE
            WHEN bool_or(h.near_pct IS NOT NULL) THEN ''
            ELSE '. The distance from ' || CASE count(*) WHEN 1 THEN 'its' ELSE 'their' END || ' roof was not measured'
        END AS evidence,
    -- The advice for the first of them.
    any_value((SELECT CASE
        WHEN near_pct >= $near_pct
            THEN short_name
                || ' is near its roof: only less work helps, such as lower precision, fewer bytes, or fusing it '
                    'with its neighbors.'
        WHEN bound = 'latency' AND avg_ns < $short_ns
            THEN short_name
                || ' ends before it fills the GPU: fuse it with its neighbors (see fusion), or give it more work, '
                    'such as a larger batch.'
        WHEN regexp_matches(name, '(?i)gemv')
            THEN short_name
                || ' reads its whole matrix for one vector: batch vectors into one matrix product, or store the '
                    'matrix in a smaller type (half precision, 8 bits).'
        WHEN family = 'gemm' AND regexp_matches(name, '(?i)dgemm|f64|double')
            THEN 'See whether ' || short_name
                || ' needs double precision: single precision, TF32 or half precision are several times faster.'
        WHEN family = 'gemm' AND regexp_matches(name, '(?i)sgemm|simt|ffma')
            AND NOT regexp_matches(name, '(?i)tf32|tensorop')
            THEN 'Let ' || short_name || ' use tensor cores: TF32 (torch.set_float32_matmul_precision), BF16 or FP16.'
        WHEN family = 'gemm' AND kernel_provenance(name) = 'hand-written'
            THEN 'A library''s matrix product (cuBLAS, CUTLASS) is usually several times faster than one written by '
                'hand: compare '
                || short_name || ' with it.'
        WHEN family = 'gemm'
            THEN 'Give ' || short_name
                || ' sizes that are multiples of 16, batch small products, or use lower precision (FP8); profile '
                    'it with ncu: nsys-insight ncu plan.'
        WHEN family = 'attention'
            THEN 'Use the fused attention of a library (FlashAttention, cuDNN) if this kernel is not one; profile it '
                'with ncu: nsys-insight ncu plan.'
        WHEN bound = 'memory'
            THEN 'Make ' || short_name
                || ' move fewer bytes: fuse it with its neighbors (see fusion), use a smaller type, a layout '
                    'without transposes.'
        WHEN bound = 'latency'
            THEN 'Give ' || short_name
                || ' more parallel work: more blocks, several inputs in one launch; see occupancy.'
        ELSE 'Profile ' || short_name
            || ' with ncu (nsys-insight ncu plan) to see whether memory, arithmetic or latency bounds it; a '
                'library may have a faster version.'
    END FROM hot_kernels WHERE turn = 1)) AS action
-- Kernels at their roof still take the time: a saving below 1 % of the wall time is not given.
FROM hot_kernels AS h,
    (
        SELECT *, coalesce((SELECT 100 * sum(recoverable_ns) FROM hot_kernels) >= all_ns, false) AS has_saving
        FROM wall_total
    ) AS w
GROUP BY w.has_saving
HAVING count(*) > 0
