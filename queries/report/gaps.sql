-- When each GPU was idle in a window, and what that is owed to: as `step_idle`, gap by gap. A gap has several rows where it is
-- owed to several causes.
WITH drawn AS (
    SELECT $from_ns AS start_ns, $to_ns AS end_ns
),
gaps AS (
    FROM idle_gaps
),
cut AS (
    FROM cut_to('gaps', 'drawn')
),
-- Each gap is a window of its own, so that what it is owed to is told by itself.
gap_pieces AS (
    SELECT * REPLACE (start_ns AS window_ns) FROM cut
)
SELECT i.gpu_id, i.window_ns AS start_ns, c.end_ns, i.cause, i.host, i.idle_ns
FROM idle_of('gap_pieces') AS i
JOIN cut AS c ON c.gpu_id = i.gpu_id AND c.start_ns = i.window_ns
ORDER BY i.gpu_id, start_ns, i.idle_ns DESC, i.cause, i.host
