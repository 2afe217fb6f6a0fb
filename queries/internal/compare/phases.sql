-- The costs of the steps of each phase, in order, by batch size if ranges name it, and for requests the time to the
-- first token and between tokens. If a phase has steady steps, its warm-up and tail steps (as in `steps`) are left out:
-- so the steps and their phase have the same figures.
WITH labeled_steps AS (
    SELECT p.phase_step, p.phase, p.batch_size, s.phase = 'steady' AS is_steady
    FROM phase_steps AS p
    JOIN steps AS s ON s.start_ns = p.start_ns AND s.end_ns = p.end_ns
    WHERE s.phase IN ('steady', 'warm-up', 'tail')
),
unsteady AS (
    SELECT phase_step FROM labeled_steps
    QUALIFY NOT is_steady AND bool_or(is_steady) OVER (PARTITION BY phase, batch_size)
)
SELECT name, metric, value
FROM (
    SELECT
        'phase' AS part, phase || coalesce(', batch ' || batch_size, '') AS name, metric, place, phase_step AS rank,
        value
    FROM phase_metrics
    ANTI JOIN unsteady USING (phase_step)
    WHERE metric IN ('wall_ns', 'gpu_busy_ns', 'gpu_idle_ns', 'launch_calls', 'sync_points')
    UNION ALL
    SELECT 'phase', phase || coalesce(', batch ' || batch_size, ''), 'prompt_tokens', 99, phase_step, prompt_tokens
    FROM phase_steps ANTI JOIN unsteady USING (phase_step) WHERE prompt_tokens IS NOT NULL
    UNION ALL
    SELECT
        'requests', 'requests', 'ttft_ns', 1, row_number() OVER (ORDER BY start_ns, request), first_token_ns - start_ns
    FROM requests WHERE first_token_ns IS NOT NULL AND start_ns IS NOT NULL
    UNION ALL
    SELECT 'requests', 'requests', 'itl_ns', 2, row_number() OVER (ORDER BY at_ns, request), since_last_ns
    FROM token_times WHERE since_last_ns IS NOT NULL
)
WHERE value IS NOT NULL
ORDER BY part, name, place, rank
