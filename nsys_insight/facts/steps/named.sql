-- The NVTX ranges of the process that may be steps: those with the name $range_name, if it is given. Otherwise all
-- ranges except a framework's operators, the ranges that libraries and XLA open inside a step, and warm-up. The pattern
-- is the text with numbers as #. A range that is never closed ends where the next one with its text begins: the program
-- forgot to close it, as it does if it leaves the loop's body early.
CREATE OR REPLACE TABLE internal.step_named AS
WITH patterns AS MATERIALIZED (
    SELECT
        thread_id, start_ns, end_ns, name, domain,
        folded_name(name) AS pattern
    FROM nvtx_ranges
    WHERE process_id = $process
),
candidate_ranges AS (
    FROM patterns WHERE end_ns > start_ns
    UNION ALL
    SELECT o.thread_id, o.start_ns, min(n.start_ns), o.name, o.domain, o.pattern
    FROM patterns AS o JOIN patterns AS n USING (thread_id, domain, pattern)
    WHERE o.end_ns IS NULL AND n.start_ns > o.start_ns
    GROUP BY ALL
)
SELECT thread_id, start_ns, end_ns, name, coalesce($range_name, pattern) AS pattern
FROM candidate_ranges
WHERE $range_name IS NULL AND NOT is_operator_name(name) AND NOT starts_with(name, 'nccl')
        AND NOT starts_with(name, 'Thunk:#') AND NOT coalesce(is_library_domain(domain), false)
        AND NOT is_warm_up_name(name)
    OR pattern = $range_name OR fits_pattern(name, $range_name)
