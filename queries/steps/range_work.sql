-- The GPU time of what is launched inside the ranges, from the first to the last of them, and in all.
SELECT
    coalesce(sum(o.end_ns - o.start_ns) FILTER (o.call_ns < r.end_ns), 0)::BIGINT,
    coalesce(sum(o.end_ns - o.start_ns) FILTER (o.call_ns < (SELECT max(end_ns) FROM step_ranges)), 0)::BIGINT,
    (SELECT coalesce(sum(end_ns - start_ns), 0)::BIGINT FROM step_launched)
FROM step_launched AS o
ASOF JOIN step_ranges AS r ON r.start_ns <= o.call_ns
