/*
description = "The mean size of the work of each launch shape, by NVTX ranges that state sizes."
[columns]
shape_id = "Number of the launch shape, as in `launch_shapes`"
flop_count = "Operations per launch"
elements_count = "Elements read or written per launch"
*/
WITH ranges_with_size AS MATERIALIZED (
    FROM sized_ranges
),
-- Without sized ranges, no call is read.
calls_in_sized_ranges AS MATERIALIZED (
    SELECT a.process_id, a.correlation_id, a.thread_id, r.start_ns, r.family, r.flop_count, r.elements_count
    FROM (
        FROM api_calls SEMI JOIN ranges_with_size USING (process_id, thread_id) WHERE call_group = 'launch'
    ) AS a
    ASOF JOIN ranges_with_size AS r
        ON r.process_id = a.process_id AND r.thread_id = a.thread_id AND r.start_ns <= a.start_ns
    WHERE a.start_ns < r.end_ns
)
SELECT shape_id, avg(flop_count) AS flop_count, avg(elements_count) AS elements_count
FROM (
    SELECT k.shape_id, c.flop_count, c.elements_count
    FROM (FROM kernel_events SEMI JOIN calls_in_sized_ranges USING (process_id, correlation_id)) AS k
    JOIN calls_in_sized_ranges AS c USING (process_id, correlation_id)
    JOIN kernel_names AS n ON n.name_id = k.name_id AND n.family = c.family
    WHERE NOT regexp_matches(n.name, '(?i)splitk_?reduce')
    QUALIFY count(*) OVER (PARTITION BY process_id, c.thread_id, c.start_ns) = 1
)
GROUP BY shape_id;
