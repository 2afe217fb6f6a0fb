-- Whether every so many repetitions one is longer: then these are layers, and that one ends a step. A repetition lasts
-- until the next one begins, with what comes between. It is longer if its wall is a tenth above the median, and more
-- than five standard deviations as the median absolute deviation estimates them.
CREATE OR REPLACE TABLE internal.step_units AS
WITH numbered AS (
    SELECT *, count(CASE WHEN is_step THEN 1 END) OVER (ORDER BY piece) AS unit FROM internal.step_pieces
),
units AS (
    SELECT
        unit, arg_min(process_id, piece) AS process_id, arg_min(thread_id, piece) AS thread_id,
        min(host_start_ns) AS host_start_ns, max(host_end_ns) AS host_end_ns, min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        bool_or(is_open) AS is_open, sum(ops)::BIGINT AS ops, sum(gpu_ns)::BIGINT AS gpu_ns
    FROM numbered
    GROUP BY unit
),
usual AS (
    SELECT
        quantile_cont(end_ns - start_ns, 0.5) AS wall_ns,
        greatest(0.1 * quantile_cont(end_ns - start_ns, 0.5), 5 * 1.4826 * mad(end_ns - start_ns)) AS tolerance_ns
    FROM units WHERE unit > 0 AND NOT is_open
)
SELECT
    u.*, u.end_ns - u.start_ns > n.wall_ns + n.tolerance_ns AS is_longer,
    count(CASE WHEN unit > 0 AND is_longer THEN 1 END) OVER (
        ORDER BY unit ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS step
FROM units AS u CROSS JOIN usual AS n;

WITH apart AS (
    SELECT unit - lag(unit) OVER (ORDER BY unit) AS apart FROM internal.step_units WHERE unit > 0 AND is_longer
),
every AS (
    SELECT quantile_disc(apart, 0.5) AS each FROM apart
)
SELECT any_value(e.each) AS each
FROM apart AS a CROSS JOIN every AS e
WHERE a.apart IS NOT NULL
HAVING count(*) >= $least AND any_value(e.each) >= 2 AND count(*) FILTER (a.apart = e.each) >= $regular * count(*)
    AND any_value(e.each) * count(*) FILTER (a.apart = e.each) >= $covered * (SELECT count(*) FROM internal.step_units)
