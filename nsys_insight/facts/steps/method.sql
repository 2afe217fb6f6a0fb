-- How steps were detected. The confidence depends on their number and on the share of the GPU time that they cover: of
-- what is launched between the first and the last NVTX range, otherwise of the stream from the first step to the last.
INSERT INTO facts.step_method BY NAME
WITH step_counts AS (
    SELECT
        count(step) AS step_count,
        count(*) FILTER (phase = 'steady') AS steady_count,
        count(*) FILTER (is_outlier) AS outlier_count,
        count(*) FILTER (phase = 'warm-up') AS warm_up_count,
        count(*) FILTER (phase = 'tail') AS tail_count,
        count(*) FILTER (phase = 'prefill') AS prefill_count
    FROM facts.steps
),
coverage AS (
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
        WHEN $is_named THEN 'high'
        WHEN $method = 'count' THEN 'low'
        WHEN $confidence IS NOT NULL THEN $confidence::VARCHAR
        WHEN step_count >= $high_steps AND share >= $high THEN 'high'
        WHEN step_count >= $medium_steps AND share >= $medium THEN 'medium'
        ELSE 'low'
    END AS confidence,
    coalesce(
        $reason::VARCHAR,
        step_count || ' repetitions hold ' || round(100 * share, 1)
            || '% of the stream''s GPU time between the first and the last'
    ) AS reason,
    $process::BIGINT AS process_id,
    step_counts.*,
    coalesce($tokens / nullif(step_count, 0), $tokens_per_step)::DOUBLE AS tokens_per_step,
    $loop::VARCHAR AS loop,
    $unit::VARCHAR AS unit,
    $doubt::VARCHAR AS doubt,
    $step_time::BIGINT AS measured_ns
FROM step_counts CROSS JOIN coverage
