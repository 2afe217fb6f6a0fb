-- The loops to list above the timeline, each with the iteration to show: the first one whose length is nearest to the
-- median. The loops with most GPU time are listed.
WITH iterations AS (
    SELECT
        i.loop, i.start_ns, i.end_ns,
        row_number() OVER (
            PARTITION BY i.loop ORDER BY i.is_different, abs(i.end_ns - i.start_ns - l.period_ns), i.start_ns
        ) AS turn
    FROM loop_iterations AS i
    JOIN loops AS l USING (loop)
    WHERE i.end_ns > i.start_ns AND l.depth < $max_depth
),
listed_loops AS (
    FROM loops WHERE depth < $max_depth ORDER BY depth, gpu_share DESC, loop LIMIT $max_loops
)
SELECT
    l.loop, l.depth, l.iterations, l.per_parent, l.period_ns, l.gpu_busy_ns, 100 * l.gpu_share AS gpu_pct,
    i.start_ns, i.end_ns
FROM listed_loops AS l
JOIN iterations AS i ON i.loop = l.loop AND i.turn = 1
ORDER BY list_transform(string_split(l.loop, '.'), lambda part: part::BIGINT)
