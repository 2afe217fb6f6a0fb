-- How steps were found. The confidence follows from how many there are and the share of the GPU time that they hold: of
-- what is launched around NVTX ranges, else of the stream from the first step to the last.
INSERT INTO facts.step_method BY NAME
WITH found AS (
    SELECT
        count(step) AS step_count,
        count(*) FILTER (phase = 'steady') AS steady_count,
        count(*) FILTER (is_outlier) AS outlier_count,
        count(*) FILTER (phase = 'warm-up') AS warm_up_count,
        count(*) FILTER (phase = 'tail') AS tail_count,
        count(*) FILTER (phase = 'prefill') AS prefill_count
    FROM facts.steps
),
held AS (
    SELECT coalesce($share, sum(gpu_ns) FILTER (is_step) / nullif(sum(gpu_ns), 0)) AS share, any_value(ops) AS ops
    FROM internal.step_pieces
    WHERE piece BETWEEN (
        SELECT min(piece) FROM internal.step_pieces WHERE is_step
    ) AND (SELECT max(piece) FROM internal.step_pieces WHERE is_step)
)
SELECT
    $method::VARCHAR AS method,
    $pattern::VARCHAR AS pattern,
    CASE
        WHEN $method IS NULL THEN NULL
        WHEN $named THEN 'high'
        WHEN $method = 'count' THEN 'low'
        WHEN step_count >= $high_steps AND share >= $high THEN 'high'
        WHEN step_count >= $medium_steps AND share >= $medium THEN 'medium'
        ELSE 'low'
    END AS confidence,
    coalesce(
        $reason,
        step_count || ' repetitions hold ' || round(100 * share, 1)
            || ' % of the stream''s GPU time between the first and the last'
    ) AS reason,
    $process::BIGINT AS process_id,
    found.*,
    coalesce($tokens / nullif(step_count, 0), $tokens_per_step)::DOUBLE AS tokens_per_step,
    $mark_name::VARCHAR AS mark_name
FROM found CROSS JOIN held
