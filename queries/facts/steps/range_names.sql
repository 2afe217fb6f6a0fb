-- The names of ranges on one thread, the outermost first: how often they come, with how many different texts, and
-- whether one ever opens inside another.
WITH placed AS (
    SELECT
        *,
        coalesce(max(end_ns) OVER (
            PARTITION BY thread_id, pattern
        ORDER BY start_ns, end_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) > start_ns, false) AS is_nested
    FROM internal.step_named
)
SELECT pattern, thread_id, count(*) AS occurrences, count(DISTINCT name) AS texts, bool_or(is_nested) AS is_nested
FROM placed
GROUP BY pattern, thread_id
ORDER BY sum(end_ns - start_ns) DESC, occurrences, pattern, thread_id
