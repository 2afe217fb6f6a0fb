/*
description = "One row per rank that is late in a step: how often, and by how much."
[columns]
rank = "The rank"
steps = "Steps in which it is late"
late_ns = "How late it is, on average over these"
main_steps = "The steps that cause most of it: all of them, or only those with long delays"
main_ns = "How late it is in these, on average"
minor_steps = "Steps in which the rank is late by less; NULL if there are none"
minor_ns = "How late it is in these, on average"
step_numbers = "The first of the main steps, in brackets: (2, 5, 8); NULL if they are more than half of all steps"
steps_in_all = "Steps of the rank"
*/
-- A mean over a few long delays and much jitter describes neither. So the steps that are at least half as late as the
-- latest are reported separately, if they are five times as late as the others.
WITH late_rank_steps AS (
    SELECT rank, step, late_ns, 2 * late_ns >= max(late_ns) OVER (PARTITION BY rank) AS is_long
    FROM rank_steps
    WHERE late_ns > 0
),
classified_steps AS (
    SELECT
        *,
        is_long OR (
            avg(late_ns) FILTER (is_long) OVER (PARTITION BY rank)
            >= 5 * avg(late_ns) FILTER (NOT is_long) OVER (PARTITION BY rank)
        ) IS NOT true AS is_main
    FROM late_rank_steps
),
lateness_by_rank AS (
    SELECT
        rank, count(*) AS steps, avg(late_ns) AS late_ns,
        count(*) FILTER (is_main) AS main_steps, avg(late_ns) FILTER (is_main) AS main_ns,
        list(step ORDER BY step) FILTER (is_main) AS main_step_numbers,
        nullif(count(*) FILTER (NOT is_main), 0) AS minor_steps, avg(late_ns) FILTER (NOT is_main) AS minor_ns
    FROM classified_steps
    GROUP BY rank
)
SELECT
    l.rank, l.steps, l.late_ns, l.main_steps, l.main_ns, l.minor_steps, l.minor_ns,
    nullif(trim(late_steps_text(l.main_step_numbers, a.steps_in_all)), '') AS step_numbers,
    a.steps_in_all
FROM lateness_by_rank AS l
JOIN (SELECT rank, count(*) AS steps_in_all FROM rank_steps GROUP BY rank) AS a USING (rank);
