-- A mean over a few long delays and much jitter describes neither. So the steps that are at least half as late as the
-- latest are reported separately, if they are five times as late as the others.
CREATE VIEW _lateness AS
WITH late_rank_steps AS (
    SELECT rank, step, late_ns, 2 * late_ns >= max(late_ns) OVER (PARTITION BY rank) AS is_most
    FROM rank_steps
    WHERE late_ns > 0
),
lateness_by_rank AS (
    SELECT
        rank,
        count(*) AS steps,
        avg(late_ns) AS late_ns,
        list(step ORDER BY step) AS step_numbers,
        count(*) FILTER (is_most) AS most_steps,
        avg(late_ns) FILTER (is_most) AS most_ns,
        list(step ORDER BY step) FILTER (is_most) AS most_step_numbers,
        avg(late_ns) FILTER (NOT is_most) AS rest_ns
    FROM late_rank_steps
    GROUP BY rank
)
SELECT
    rank,
    steps,
    late_ns,
    CASE
        WHEN most_ns >= 5 * rest_ns
            THEN most_steps || ' of ' || a.steps_in_all || ' ' || r.unit || 's'
                || late_steps_text(most_step_numbers, a.steps_in_all) || ' by '
                || time_text(most_ns) || ', and in ' || (steps - most_steps) || ' more by ' || time_text(rest_ns)
        ELSE steps || ' of ' || a.steps_in_all || ' ' || r.unit || 's' || late_steps_text(step_numbers, a.steps_in_all)
            || ' by ' || time_text(late_ns)
    END AS text
FROM lateness_by_rank
JOIN (SELECT rank, count(*) AS steps_in_all FROM rank_steps GROUP BY rank) AS a USING (rank)
CROSS JOIN (SELECT unit FROM rank_run) AS r;

COMMENT ON VIEW _lateness IS 'One row per rank that is late in a step: how often, and by how much.';
COMMENT ON COLUMN _lateness.rank IS 'The rank';
COMMENT ON COLUMN _lateness.steps IS 'Steps in which it is late';
COMMENT ON COLUMN _lateness.late_ns IS 'How late it is, on average over these';
COMMENT ON COLUMN _lateness.text IS 'The same in words: 3 of 8 steps (2, 5, 8) by 3 ms';
