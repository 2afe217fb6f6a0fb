-- The NVTX ranges of the process that may be steps: those that are $wanted, or all but a framework's operators and what
-- is called warm-up, each by its text with numbers as #.
CREATE OR REPLACE VIEW internal.step_named AS
WITH named AS (
    SELECT
        thread_id, start_ns, end_ns, name,
        folded_name(name) AS pattern
    FROM nvtx_ranges
    WHERE process_id = $process AND end_ns > start_ns
)
SELECT thread_id, start_ns, end_ns, name, coalesce($wanted, pattern) AS pattern
FROM named
WHERE $wanted IS NULL AND NOT is_operator_name(name)
        AND NOT is_warm_up_name(name)
    OR pattern = $wanted OR name GLOB replace($wanted, '[', '[[]')
