/*
description = "Threads that load code in steady steps: one row."
[columns]
threads = "Threads that load code"
steps = "Steps in which one of them does"
pairs = "Pairs of a step and a thread that loads code in it"
*/
SELECT
    count(DISTINCT c.thread_id) AS threads,
    count(DISTINCT s.step) AS steps,
    count(DISTINCT (c.thread_id, s.step)) AS pairs
FROM (FROM outer_api_calls WHERE regexp_matches(name, '^cu(da)?(Library|Module)Load')) AS c
ASOF JOIN (FROM steps WHERE phase IN ('steady', 'tail')) AS s
    ON s.process_id = c.process_id AND s.host_start_ns <= c.start_ns
WHERE c.start_ns < s.host_end_ns;
