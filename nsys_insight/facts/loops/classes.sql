-- The class of each token, and whether it ends steps: a sampled token, a loss, an optimizer. Operations of one class
-- may replace each other in a variant of an iteration: kernels of one family, or templates of one function where the
-- family is unknown. The reduction after a split-K GEMM has the class -1: it comes and goes.
WITH operations AS (
    SELECT DISTINCT token, kind, name_id, device_id FROM internal.loop_sequence
)
SELECT
    o.token,
    min(
        CASE
            WHEN regexp_matches(k.name, '(?i)splitK_?reduce|reduce_?splitK') THEN -1
            ELSE (
                hash(
                    CASE WHEN k.family = 'other' THEN kernel_base_name(k.name) ELSE coalesce(k.family, o.kind) END,
                    o.device_id
                ) % 4611686018427387904
            )::BIGINT
        END
    ) AS class_id,
    bool_or(coalesce(regexp_matches(
        k.name, '(?i)multi_tensor|adam|sgd|lamb([^d]|$)|addcdiv|optimizer|argmax|multinomial|nll_loss|cross_?entropy'
    ), false)) AS ends_step
FROM operations AS o
LEFT JOIN kernel_names AS k USING (name_id)
GROUP BY o.token
