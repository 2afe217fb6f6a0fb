-- The names of ranges on one thread, those with the longest total time first: how often each occurs, with how many
-- different texts, and whether it ever opens inside itself.
WITH ranges_with_nesting AS (
    SELECT
        *,
        coalesce(max(end_ns) OVER (
            PARTITION BY thread_id, pattern
        ORDER BY start_ns, end_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) > start_ns, false) AS is_nested
    FROM internal.step_named
)
SELECT pattern, thread_id, count(*) AS occurrences, count(DISTINCT name) AS texts, bool_or(is_nested) AS is_nested
FROM ranges_with_nesting
GROUP BY pattern, thread_id
ORDER BY sum(end_ns - start_ns) DESC, occurrences, pattern, thread_id
