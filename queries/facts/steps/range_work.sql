-- The GPU time of what is launched inside the ranges, from the first to the last of them, and in all.
SELECT
    coalesce(sum(o.end_ns - o.start_ns) FILTER (o.call_ns < r.end_ns), 0)::BIGINT AS inside_ns,
    coalesce(sum(o.end_ns - o.start_ns) FILTER (o.call_ns < (SELECT max(end_ns) FROM internal.step_ranges)), 0)::BIGINT AS around_ns,
    (SELECT coalesce(sum(end_ns - start_ns), 0)::BIGINT FROM internal.step_launched) AS all_ns
FROM internal.step_launched AS o
ASOF JOIN internal.step_ranges AS r ON r.start_ns <= o.call_ns
