/*
description = """Ranges of steps that go on after the last CUDA call of the trace, as nsys lost what happened in them;
    no row where at most one does."""
[columns]
steps = "All ranges"
unseen = "Ranges that begin after the last CUDA call"
unseen_ns = "From the last CUDA call to the start of the last range"
last_step = """The last step with calls of a thread that launched in each step until then, although the others go on;
    NULL if there is none"""
*/
WITH ranges AS (
    SELECT step, phase, start_ns, reason = 'begins after the last CUDA call in the trace' AS is_unseen FROM steps
),
stopped_threads AS (
    SELECT max(step) AS last_step
    FROM step_calls
    WHERE call_group IN ('launch', 'graph launch')
    GROUP BY process_id, thread_id
    HAVING count(DISTINCT step) = max(step) - min(step) + 1 AND count(DISTINCT step) >= 5
        AND max(step) + 1 < (SELECT max(step) FROM ranges WHERE phase = 'steady')
)
SELECT
    count(step) AS steps, count(*) FILTER (is_unseen) AS unseen,
    max(start_ns) FILTER (is_unseen) - (SELECT max(end_ns) FROM wall) AS unseen_ns,
    (SELECT min(last_step) FROM stopped_threads) AS last_step
FROM ranges
HAVING count(*) FILTER (is_unseen) > 1;
