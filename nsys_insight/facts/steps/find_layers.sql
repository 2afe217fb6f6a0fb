-- Whether every nth repetition does more work. Then the repetitions are layers, and that one ends a step. It does more
-- if its GPU time is a tenth above the median and more than five standard deviations above it. The median absolute
-- deviation estimates the latter. A pause of the host after each nth repetition is an interruption: garbage collection,
-- a file that is written.
CREATE OR REPLACE TABLE internal.step_units AS
WITH numbered_pieces AS (
    SELECT *, count(CASE WHEN is_step THEN 1 END) OVER (ORDER BY piece) AS unit FROM internal.step_pieces
),
-- One row per repetition. Unit 0 is what comes before the first one.
units AS (
    SELECT
        unit, arg_min(process_id, piece) AS process_id, arg_min(thread_id, piece) AS thread_id,
        min(host_start_ns) AS host_start_ns, max(host_end_ns) AS host_end_ns, min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        bool_or(is_open) AS is_open, sum(ops)::BIGINT AS ops, sum(gpu_ns)::BIGINT AS gpu_ns,
        sum(gpu_ns) FILTER (is_step)::BIGINT AS own_ns
    FROM numbered_pieces
    GROUP BY unit
),
unit_medians AS (
    SELECT
        quantile_cont(own_ns, 0.5) AS own_ns,
        greatest(0.1 * quantile_cont(own_ns, 0.5), 5 * 1.4826 * mad(own_ns)) AS tolerance_ns
    FROM units WHERE unit > 0
)
SELECT
    u.* EXCLUDE (own_ns), coalesce(u.own_ns > m.own_ns + m.tolerance_ns, false) AS is_longer,
    count(CASE WHEN unit > 0 AND is_longer THEN 1 END) OVER (
        ORDER BY unit ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS step
FROM units AS u CROSS JOIN unit_medians AS m;

-- How many repetitions a step has: the usual distance of longer repetitions, if enough of them have it.
WITH distances AS (
    SELECT unit - lag(unit) OVER (ORDER BY unit) AS distance FROM internal.step_units WHERE unit > 0 AND is_longer
),
usual_distances AS (
    SELECT quantile_disc(distance, 0.5) AS repetitions FROM distances
)
SELECT any_value(u.repetitions) AS repetitions
FROM distances AS d CROSS JOIN usual_distances AS u
WHERE d.distance IS NOT NULL
HAVING count(*) >= $least AND any_value(u.repetitions) >= 2
    AND count(*) FILTER (d.distance = u.repetitions) >= $regular * count(*)
    AND any_value(u.repetitions) * count(*) FILTER (d.distance = u.repetitions)
        >= $covered * (SELECT count(*) FROM internal.step_units)
