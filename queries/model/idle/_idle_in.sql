-- The causes of idle time in each of some windows (start_ns, end_ns; disjoint), by the rules of `_idle_of`.
CREATE MACRO _idle_in(windows) AS TABLE
WITH times AS (
    SELECT * EXCLUDE (thread) FROM facts.idle_time
),
calls AS (
    FROM facts.idle_calls
),
time_pieces AS (
    FROM cut_to('times', windows)
),
call_pieces AS (
    FROM cut_to('calls', windows)
)
SELECT gpu_id, window_ns, cause, host, idle_ns
FROM _idle_of('time_pieces', 'call_pieces');
