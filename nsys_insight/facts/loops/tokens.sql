-- What each token stands for. Operations of one class may replace each other in a variant of an iteration: kernels of
-- one family, or templates of one function where the family is unknown. The reduction after a split-K GEMM has the
-- class -1: it comes and goes. A sampled token, a loss or an optimizer ends a step.
WITH operations AS (
    SELECT token, kind, name_id, device_id, count(*) AS rows_count FROM internal.loop_sequence GROUP BY ALL
)
SELECT
    o.token,
    min(
        CASE
            WHEN regexp_extract(k.name, '(?i)splitK_?reduce|reduce_?splitK') <> '' THEN -1
            ELSE (
                hash(
                    CASE WHEN k.family = 'other' THEN kernel_base_name(k.name) ELSE coalesce(k.family, o.kind) END,
                    o.device_id
                ) % 4611686018427387904
            )::BIGINT
        END
    ) AS class_id,
    bool_or(coalesce(regexp_extract(
        k.name, '(?i)multi_tensor|adam|sgd|lamb([^d]|$)|addcdiv|optimizer|argmax|multinomial|nll_loss|cross_?entropy'
    ) <> '', false)) AS ends_step,
    coalesce(bool_or(k.family = 'comm'), false) AS is_communication,
    o.token = hash('wait') AS is_wait,
    CASE WHEN is_wait THEN 'wait' ELSE min(o.kind) END AS kind,
    coalesce(min(o.device_id), -1) AS device_id,
    min(o.name_id) AS name_id,
    sum(o.rows_count)::BIGINT AS rows_count
FROM operations AS o
LEFT JOIN kernel_names AS k USING (name_id)
GROUP BY o.token
ORDER BY o.token
