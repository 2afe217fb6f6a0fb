-- The GPU time that is launched inside the ranges, between the first and the last of them, and in total.
WITH operations AS NOT MATERIALIZED (
    SELECT call_ns AS start_ns, call_ns AS end_ns, end_ns - start_ns AS gpu_ns FROM internal.step_launched
),
ranges AS (
    FROM internal.step_ranges
)
SELECT
    (SELECT coalesce(sum(gpu_ns), 0)::BIGINT FROM whole_in('operations', 'ranges')) AS inside_ns,
    coalesce(sum(gpu_ns) FILTER (start_ns >= first_ns AND start_ns < last_ns), 0)::BIGINT AS around_ns,
    coalesce(sum(gpu_ns), 0)::BIGINT AS all_ns
FROM operations, (SELECT min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM ranges)
