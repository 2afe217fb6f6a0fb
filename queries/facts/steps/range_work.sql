-- The GPU time of what is launched inside the ranges, from the first to the last of them, and in all.
WITH launched AS NOT MATERIALIZED (
    SELECT call_ns AS start_ns, call_ns AS end_ns, end_ns - start_ns AS gpu_ns FROM internal.step_launched
),
ranges AS (
    FROM internal.step_ranges
)
SELECT
    (SELECT coalesce(sum(gpu_ns), 0)::BIGINT FROM whole_in('launched', 'ranges')) AS inside_ns,
    coalesce(sum(gpu_ns) FILTER (start_ns >= first_ns AND start_ns < last_ns), 0)::BIGINT AS around_ns,
    coalesce(sum(gpu_ns), 0)::BIGINT AS all_ns
FROM launched, (SELECT min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM ranges)
