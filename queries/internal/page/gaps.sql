-- When each GPU was idle in windows of time that do not overlap, and why: as `step_idle`, gap by gap. A gap has several
-- rows where it is due to several causes, and is two where the profiler held the host up for a part of it.
WITH drawn AS (
    SELECT unnest($starts)::BIGINT AS start_ns, unnest($ends)::BIGINT AS end_ns
),
times AS (
    FROM _idle_time WHERE start_ns < list_max($ends) AND end_ns > list_min($starts)
),
gaps AS (
    FROM cut_to('times', 'drawn')
),
-- Each gap is a window of its own, so that its causes are its own.
pieces AS (
    SELECT * REPLACE (start_ns AS window_ns) FROM gaps
),
uncut AS (
    FROM pieces WHERE start_ns = gap_ns AND end_ns = gap_end_ns
),
cut AS (
    FROM pieces WHERE start_ns <> gap_ns OR end_ns <> gap_end_ns
)
SELECT i.gpu_id, i.window_ns AS start_ns, g.end_ns, i.cause, i.host, i.idle_ns
FROM _idle_of('uncut', 'cut') AS i
JOIN gaps AS g ON g.gpu_id = i.gpu_id AND g.start_ns = i.window_ns
ORDER BY i.gpu_id, start_ns, i.idle_ns DESC, i.cause, i.host
