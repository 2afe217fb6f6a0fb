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
-- An operation finds its place by a slot of time, as in totals.sql: an ASOF join would sort all of them.
line AS MATERIALIZED (
    SELECT
        min(start_ns) AS first_ns, max(end_ns) AS last_ns,
        greatest(1, (max(end_ns) - min(start_ns)) // (8 * count(*))) AS slot_ns
    FROM internal.step_ranges
),
slots AS (
    SELECT
        at_ns, until_ns,
        unnest(
            range(
                greatest(first_ns, least(last_ns, at_ns)) // slot_ns,
                greatest(first_ns, least(last_ns, until_ns)) // slot_ns + 1
            )
        ) AS slot
    FROM cut CROSS JOIN line
),
worked AS (
    SELECT
        c.at_ns, count(*) AS ops, min(o.start_ns) AS start_ns, max(o.end_ns) AS end_ns,
        sum(o.end_ns - o.start_ns)::BIGINT AS gpu_ns,
        sum(greatest(0, least(o.end_ns, c.until_ns) - greatest(o.start_ns, c.at_ns)))::BIGINT AS inside_ns
    FROM (
        SELECT
            start_ns, end_ns, coalesce(call_ns, start_ns) AS place_ns,
            greatest(first_ns, least(last_ns, place_ns)) // slot_ns AS slot
        FROM internal.step_launched CROSS JOIN line
    ) AS o
    JOIN slots AS c USING (slot)
    WHERE o.place_ns >= c.at_ns AND o.place_ns < c.until_ns
    GROUP BY c.at_ns
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
