-- The steps of the phases, without those in a warm-up range. The statements that count the contents of steps read this
-- table.
CREATE OR REPLACE TABLE internal.step_ranges AS
WITH warm_ups AS (
    SELECT start_ns, max(end_ns) OVER (ORDER BY start_ns, end_ns) AS end_ns
    FROM nvtx_ranges
    WHERE process_id = $process AND is_warm_up_name(name) AND end_ns > start_ns
),
candidate_steps AS (
    SELECT
        step_start_ns AS start_ns, step_end_ns AS end_ns, any_value(step_phase) AS phase,
        -- The batch of a mixed step is the batch that it decodes.
        max(batch_size) FILTER (phase <> 'prefill' OR step_phase = 'prefill') AS batch_size,
        sum(prompt_tokens)::BIGINT AS prompt_tokens
    FROM _phase_ranges
    WHERE process_id = $process AND thread_id = $thread
    GROUP BY step_start_ns, step_end_ns
)
SELECT c.*
FROM candidate_steps AS c ASOF LEFT JOIN warm_ups AS w ON w.start_ns <= c.start_ns
WHERE w.end_ns IS NULL OR c.start_ns >= w.end_ns
