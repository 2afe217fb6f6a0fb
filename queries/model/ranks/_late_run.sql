-- Several ranks that are late together cost as much as one of them.
CREATE VIEW _late_run AS
WITH cost AS (
    SELECT sum(late_ns)::DOUBLE AS late_ns, sum(wall_ns)::DOUBLE AS wall_ns, count(*) AS steps
    FROM (
        SELECT step, min(late_ns) FILTER (rank IN (SELECT rank FROM _lateness)) AS late_ns, max(wall_ns) AS wall_ns
        FROM rank_steps
        GROUP BY step
    )
),
late_ranks AS (
    SELECT CASE count(*) WHEN 1 THEN 'rank ' ELSE 'ranks ' END || string_agg(rank, ', ' ORDER BY rank) AS names
    FROM _lateness
),
costliest_rank AS (
    SELECT y.text, r.cause, r.busy_ratio, r.host, r.place
    FROM _lateness AS y JOIN ranks AS r USING (rank)
    ORDER BY y.late_ns * y.steps DESC, rank
    LIMIT 1
)
SELECT c.late_ns, c.wall_ns, c.steps, l.names, w.text, w.cause, w.busy_ratio, w.host, w.place, o.text AS others, r.unit
FROM rank_run AS r
CROSS JOIN cost AS c
CROSS JOIN _others_wait AS o
CROSS JOIN late_ranks AS l
CROSS JOIN costliest_rank AS w
WHERE r.verdict = 'late';

COMMENT ON VIEW _late_run IS
    'One row for a run in which the same ranks are late: what that costs, and what is known about the rank that '
    'costs most.';
COMMENT ON COLUMN _late_run.late_ns IS 'How late a rank is, over all steps';
COMMENT ON COLUMN _late_run.wall_ns IS 'How long these are';
COMMENT ON COLUMN _late_run.steps IS 'How many they are';
COMMENT ON COLUMN _late_run.names IS 'The ranks that are late: ranks 1, 2';
COMMENT ON COLUMN _late_run.text IS 'How often the rank that costs most is late and by how much, as in `_lateness`';
COMMENT ON COLUMN _late_run.cause IS 'What makes it late, as in `ranks`';
COMMENT ON COLUMN _late_run.busy_ratio IS 'How many times as long as the others'' GPUs its GPU is busy';
COMMENT ON COLUMN _late_run.host IS 'What its host does meanwhile';
COMMENT ON COLUMN _late_run.place IS 'In which NVTX range';
COMMENT ON COLUMN _late_run.others IS 'How long the others wait, as in `_others_wait`';
COMMENT ON COLUMN _late_run.unit IS 'step, or collective';
