-- The CUDA calls of all threads of the process in these steps, and the first call after them. `path` are the NVTX
-- ranges around the middle of the time before each call.
WITH calls AS (
    SELECT
        start_ns, end_ns, thread_id, name, call_group, correlation_id,
        (start_ns + greatest(coalesce(lag(end_ns) OVER (ORDER BY start_ns, end_ns), $from), $from)) // 2 AS before_ns
    FROM outer_api_calls
    WHERE process_id = $process AND start_ns >= $from AND start_ns < 2 * $to - $from
    QUALIFY start_ns < $to OR row_number() OVER (PARTITION BY start_ns >= $to ORDER BY start_ns, end_ns) = 1
),
calls_with_path AS (
    SELECT c.*, n.path
    FROM calls AS c
    ASOF LEFT JOIN (FROM nvtx_places WHERE process_id = $process) AS p ON p.thread_id = c.thread_id
        AND p.start_ns <= c.before_ns
    LEFT JOIN nvtx_nesting AS n ON n.range_id = p.range_id
)
SELECT
    c.start_ns, greatest(c.start_ns, c.end_ns) AS end_ns, c.thread_id, c.name, c.call_group, c.correlation_id,
    f.folded AS path
FROM calls_with_path AS c
LEFT JOIN (
    SELECT path, fold(path) AS folded FROM (SELECT DISTINCT path FROM calls_with_path WHERE path IS NOT NULL)
) AS f USING (path)
ORDER BY c.start_ns, c.end_ns
