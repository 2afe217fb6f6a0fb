/*
description = "One row for a run in which the same ranks are late: how long the others wait for them."
[columns]
waiting_ns = "In a step, on average over the steps and the others"
*/
-- The stages of a pipeline wait for each other in every step: then only the waiting time beyond the usual one is due to
-- a late stage.
WITH usual_waits AS (
    SELECT rank, median(waiting_ns) AS waiting_ns FROM rank_steps
    WHERE step NOT IN (SELECT step FROM rank_steps WHERE late_ns > 0)
        AND (SELECT compared_with FROM rank_run) = 'itself'
    GROUP BY rank
),
extra_waits AS (
    SELECT s.rank, s.waiting_ns - coalesce(o.waiting_ns, 0) AS waiting_ns
    FROM rank_steps AS s
    LEFT JOIN usual_waits AS o USING (rank)
)
SELECT avg(u.waiting_ns) AS waiting_ns
FROM extra_waits AS u, rank_run AS r
WHERE r.verdict = 'late' AND u.rank NOT IN (SELECT rank FROM _lateness)
HAVING count(*) > 0;
