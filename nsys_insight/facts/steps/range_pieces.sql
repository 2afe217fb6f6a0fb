-- The time of the host, cut where a range begins. With $by_period, a step lasts until the next range begins: what the
-- host does between two ranges belongs to the first one, unless it launches much more there than between most ranges.
-- Then, after the last range, and without $by_period, it is cut where the range ends as well. An operation belongs to
-- the step in which its launch call begins, on any thread. If at least 95% of the GPU time that is launched in the
-- steps also runs in them, steps have the times of their ranges, and the last one ends with its work: it is shorter
-- than the others if the host takes much time between the ranges. Otherwise a step
-- lasts, on the GPU's timeline, from its first operation to the first one of the next step.
CREATE OR REPLACE TABLE internal.step_pieces AS
WITH next_ranges AS (
    SELECT start_ns, end_ns, lead(start_ns) OVER (ORDER BY start_ns) AS next_ns FROM internal.step_ranges
),
between_ranges AS (
    SELECT end_ns AS start_ns, next_ns AS end_ns FROM next_ranges WHERE next_ns > end_ns
),
operations AS (
    SELECT coalesce(call_ns, start_ns) AS start_ns, start_ns AS op_ns, end_ns AS op_end_ns FROM internal.step_launched
),
-- The number of operations that are launched between each range and the next one.
work_between AS (
    SELECT r.end_ns AS at_ns, r.next_ns, coalesce(o.operations, 0) AS operations
    FROM next_ranges AS r
    LEFT JOIN (
        SELECT window_ns, count(*) AS operations FROM begun_in('operations', 'between_ranges') GROUP BY window_ns
    ) AS o ON o.window_ns = r.end_ns AND r.next_ns > r.end_ns
),
ends AS (
    SELECT at_ns
    FROM work_between
    WHERE next_ns IS NULL
        OR (next_ns > at_ns AND NOT $by_period)
        OR operations > 2 * (SELECT quantile_cont(operations, 0.5) FROM work_between WHERE next_ns IS NOT NULL) + 2
),
edges AS (
    SELECT start_ns AS at_ns, end_ns, true AS is_step FROM internal.step_ranges
    UNION ALL
    SELECT at_ns, NULL, false FROM ends
    UNION ALL
    SELECT -9223372036854775807, NULL, false
),
host_intervals AS (
    SELECT at_ns, is_step, coalesce(lead(at_ns) OVER (ORDER BY at_ns), 9223372036854775807) AS until_ns FROM edges
),
windows AS (
    SELECT at_ns AS start_ns, until_ns AS end_ns FROM host_intervals
),
-- What is launched in each interval, and how much of it runs there (inside_ns).
interval_work AS (
    SELECT
        window_ns AS at_ns, count(*) AS ops, min(op_ns) AS start_ns, max(op_end_ns) AS end_ns,
        sum(op_end_ns - op_ns)::BIGINT AS gpu_ns,
        sum(greatest(0, least(op_end_ns, window_end_ns) - greatest(op_ns, window_ns)))::BIGINT AS inside_ns
    FROM begun_in('operations', 'windows')
    GROUP BY window_ns
),
pieces AS (
    SELECT
        c.at_ns, c.until_ns, c.is_step, coalesce(w.ops, 0) AS ops, coalesce(w.gpu_ns, 0) AS gpu_ns, w.inside_ns,
        w.start_ns,
        w.end_ns
    FROM host_intervals AS c LEFT JOIN interval_work AS w ON w.at_ns = c.at_ns
    WHERE c.is_step OR w.ops > 0
),
timed_pieces AS (
    SELECT
        *,
        (SELECT sum(inside_ns) >= 0.95 * sum(gpu_ns) FROM pieces WHERE is_step) AS is_own_time,
        $by_period AND (
            SELECT sum(end_ns - start_ns) < 0.9 * sum(next_ns - start_ns) FROM next_ranges WHERE next_ns IS NOT NULL
        ) AS has_time_between,
        at_ns = max(at_ns) FILTER (is_step) OVER () AS is_last_step,
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
        WHEN is_last_step AND $by_period THEN greatest(until_ns, end_ns)
        WHEN is_step THEN until_ns
        ELSE least(end_ns, until_ns)
    END AS end_ns,
    (next_ns IS NULL AND NOT is_own_time) OR (is_last_step AND has_time_between) AS is_open,
    ops,
    gpu_ns
FROM timed_pieces
