-- When each GPU was idle in a window, and why: as `step_idle`, gap by gap. A gap has several rows where it is
-- due to several causes, and is two where the profiler held the host up for a part of it.
WITH drawn AS (
    SELECT $from_ns AS start_ns, $to_ns AS end_ns
),
times AS (
    SELECT * EXCLUDE (thread) FROM facts.idle_time
),
calls AS (
    FROM facts.idle_calls
),
gaps AS (
    FROM cut_to('times', 'drawn')
),
in_gaps AS (
    FROM cut_to('calls', 'drawn')
),
-- Each gap is a window of its own, so that its causes are its own.
time_pieces AS (
    SELECT * REPLACE (start_ns AS window_ns) FROM gaps
),
call_pieces AS (
    SELECT c.* REPLACE (g.start_ns AS window_ns)
    FROM in_gaps AS c
    ASOF JOIN gaps AS g ON g.gpu_id = c.gpu_id AND g.start_ns <= c.start_ns
)
SELECT i.gpu_id, i.window_ns AS start_ns, g.end_ns, i.cause, i.host, i.idle_ns
FROM _idle_of('time_pieces', 'call_pieces') AS i
JOIN gaps AS g ON g.gpu_id = i.gpu_id AND g.start_ns = i.window_ns
ORDER BY i.gpu_id, start_ns, i.idle_ns DESC, i.cause, i.host
