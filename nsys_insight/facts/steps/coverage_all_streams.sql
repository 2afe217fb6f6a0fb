-- The share of the GPU time that runs during the steps, on all streams.
SELECT
    coalesce(
        sum(o.end_ns - o.start_ns) FILTER (p.is_step AND o.start_ns < p.end_ns) / nullif(sum(o.end_ns - o.start_ns), 0),
        0
    )::DOUBLE AS share
FROM internal.step_launched AS o
ASOF LEFT JOIN internal.step_pieces AS p ON p.start_ns <= o.start_ns
