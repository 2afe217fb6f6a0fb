-- The causes of idle time in each of some windows (start_ns, end_ns; disjoint), by the rules of `_idle_of`.
CREATE MACRO _idle_in(windows) AS TABLE
WITH times AS (
    FROM _idle_time
),
pieces AS (
    FROM cut_to('times', windows)
)
SELECT gpu_id, window_ns, cause, host, idle_ns
FROM _idle_of('pieces');
