-- The ranges of one name on one thread, without ranges that are inside another one.
CREATE OR REPLACE TABLE internal.step_ranges AS
SELECT start_ns, end_ns
FROM internal.step_named
WHERE thread_id = $thread AND pattern = $pattern
QUALIFY coalesce(max(end_ns) OVER (
    ORDER BY start_ns, end_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
) <= start_ns, true)
