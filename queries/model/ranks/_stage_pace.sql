/*
description = "One row for a pipeline: the stage that is busy longest in the usual step."
[columns]
rank = "Rank of the slowest stage"
busy_ns = "GPU busy time of that rank in the usual step, without communication"
step_ns = "The length of the usual step"
more_ns = "How much longer it is busy than the median of the others"
ratio = "How many times as long as these"
high_ns = "How much shorter a step is with stages of equal length; NULL where that is less than a tenth of it"
*/
-- All microbatches but the first pass a pipeline at the pace of its longest stage (Huang et al., GPipe, 2019: with
-- m microbatches a step takes the sum of all stages and m - 1 times the longest one). Equal stages take the mean.
WITH usual_times AS (
    SELECT rank, median(busy_ns) AS busy_ns, median(wall_ns) AS wall_ns
    FROM rank_steps
    WHERE step NOT IN (SELECT step FROM rank_steps WHERE late_ns > 0)
    GROUP BY rank
),
longest AS (
    FROM usual_times ORDER BY busy_ns DESC, rank LIMIT 1
),
savings AS (
    SELECT
        any_value(l.rank) AS rank, any_value(l.busy_ns) AS busy_ns, any_value(l.wall_ns) AS step_ns,
        median(u.busy_ns) FILTER (u.rank <> l.rank) AS others_ns,
        any_value(r.stage_messages - 1) / any_value(r.stage_messages) * (any_value(l.busy_ns) - avg(u.busy_ns))
            AS saving_ns
    FROM usual_times AS u CROSS JOIN longest AS l CROSS JOIN rank_run AS r
    WHERE r.stages IS NOT NULL
    HAVING count(*) > 0
)
SELECT
    rank, busy_ns, step_ns, busy_ns - others_ns AS more_ns, busy_ns / nullif(others_ns, 0) AS ratio,
    -- A last stage with a loss is usually a little longer.
    CASE WHEN saving_ns >= 0.1 * step_ns THEN saving_ns END AS high_ns
FROM savings;
