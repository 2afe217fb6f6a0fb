-- The time of the host, cut where a range begins and ends. What is launched inside a range, by whichever thread, is the
-- step's. Steps have the ranges' own times if what is launched in them also runs in them, but for a twentieth; else, on
-- the GPU's timeline, they last from their first operation to the next one's.
CREATE OR REPLACE TABLE internal.step_pieces AS
WITH edges AS (
    SELECT start_ns AS at_ns, end_ns, true AS is_step FROM internal.step_ranges
    UNION ALL
    SELECT end_ns, NULL, false FROM internal.step_ranges WHERE end_ns NOT IN (SELECT start_ns FROM internal.step_ranges)
    UNION ALL
    SELECT -9223372036854775807, NULL, false
),
cut AS (
    SELECT at_ns, is_step, coalesce(lead(at_ns) OVER (ORDER BY at_ns), 9223372036854775807) AS until_ns FROM edges
),
windows AS (
    SELECT at_ns AS start_ns, until_ns AS end_ns FROM cut
),
launched AS (
    SELECT coalesce(call_ns, start_ns) AS start_ns, start_ns AS op_ns, end_ns AS op_end_ns FROM internal.step_launched
),
worked AS (
    SELECT
        window_ns AS at_ns, count(*) AS ops, min(op_ns) AS start_ns, max(op_end_ns) AS end_ns,
        sum(op_end_ns - op_ns)::BIGINT AS gpu_ns,
        sum(greatest(0, least(op_end_ns, window_end_ns) - greatest(op_ns, window_ns)))::BIGINT AS inside_ns
    FROM begun_in('launched', 'windows')
    GROUP BY window_ns
),
pieces AS (
    SELECT
        c.at_ns, c.until_ns, c.is_step, coalesce(w.ops, 0) AS ops, coalesce(w.gpu_ns, 0) AS gpu_ns, w.inside_ns,
        w.start_ns,
        w.end_ns
    FROM cut AS c LEFT JOIN worked AS w ON w.at_ns = c.at_ns
    WHERE c.is_step OR w.ops > 0
),
timed AS (
    SELECT
        *,
        (SELECT sum(inside_ns) >= 0.95 * sum(gpu_ns) FROM pieces WHERE is_step) AS is_own_time,
        min(start_ns) OVER (ORDER BY at_ns ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS next_ns
    FROM pieces
)
SELECT
    row_number() OVER (ORDER BY at_ns) - 1 AS piece,
    is_step,
    $process::BIGINT AS process_id,
    $thread::BIGINT AS thread_id,
    at_ns AS host_start_ns,
    until_ns AS host_end_ns,
    CASE
        WHEN NOT is_own_time THEN coalesce(least(start_ns, next_ns), next_ns)
        WHEN is_step THEN at_ns
        ELSE greatest(start_ns, at_ns)
    END AS start_ns,
    CASE
        WHEN NOT is_own_time THEN coalesce(next_ns, end_ns)
        WHEN is_step THEN until_ns
        ELSE least(end_ns, until_ns)
    END AS end_ns,
    next_ns IS NULL AND NOT is_own_time AS is_open,
    ops,
    gpu_ns
FROM timed
