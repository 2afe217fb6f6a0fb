-- The GPU time that is launched inside the ranges, between the first and the last of them, and in total; how many of
-- the ranges launch any; and the part of it in operations whose name most of these ranges have.
WITH operations AS MATERIALIZED (
    SELECT
        call_ns AS start_ns, call_ns AS end_ns, end_ns - start_ns AS gpu_ns, coalesce(name_id, -1) AS name_id
    FROM internal.step_launched
),
ranges AS (
    FROM internal.step_ranges
),
work_inside AS MATERIALIZED (
    SELECT name_id, window_ns, sum(gpu_ns)::BIGINT AS gpu_ns FROM whole_in('operations', 'ranges') GROUP BY ALL
),
-- In how many ranges each name occurs.
names AS (
    SELECT name_id, count(*) AS ranges, sum(gpu_ns) AS gpu_ns FROM work_inside GROUP BY name_id
),
used_ranges AS (
    SELECT count(DISTINCT window_ns) AS ranges FROM work_inside
)
SELECT
    (SELECT coalesce(sum(gpu_ns), 0)::BIGINT FROM work_inside) AS inside_ns,
    (SELECT ranges FROM used_ranges) AS ranges_count,
    (SELECT coalesce(sum(n.gpu_ns) FILTER (2 * n.ranges > u.ranges), 0)::BIGINT FROM names AS n, used_ranges AS u)
        AS repeated_ns,
    coalesce(sum(gpu_ns) FILTER (start_ns >= first_ns AND start_ns < last_ns), 0)::BIGINT AS around_ns,
    coalesce(sum(gpu_ns), 0)::BIGINT AS all_ns
FROM operations, (SELECT min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM ranges)
