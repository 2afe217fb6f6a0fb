/*
title = "Idle time of each GPU by the length of its gaps"
topic = "idle"
place = 4
question = "How long are the gaps: many short ones or few long ones?"
examples = ["", "--steady"]
main = ["gpu_id", "length", "gaps", "total_ns", "idle_pct", "wall_pct", "avg_ns"]
description = """
Counts the gaps of each GPU by their length. A gap is the time from the end of all operations so far (kernels,
copies, memsets, whole graphs) to the start of the next; under --nvtx gaps are cut to the ranges. Gaps and busy time
add up to the time from the first operation to the last; the wall time before and after is not a gap. In a scope,
time in which the GPU worked for something outside the scope is not a gap either."""
reading = """
Gaps of up to 1 or 2 µs are the GPU's own pace from one kernel to the next of a stream: only fewer kernels (fusion)
or CUDA graphs shorten them. Much time in gaps of 2 to 20 µs: launch-bound: the host takes longer to launch than the
GPU to run; use CUDA graphs, fuse, or make the work larger. 20 µs to 1 ms: synchronization, allocation or CPU work
between launches, see gaps and syncs. Longer gaps: loading, compiling, input; gaps lists each of them."""
empty = "No gaps: fewer than two GPU operations in this scope"

[columns]
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"
length = "Length of the gaps: the lower bound is included, the upper is not"
gaps = "How many"
total_ns = "Sum of their lengths"
idle_pct = "total_ns as a share of the idle time of all gaps of this GPU"
wall_pct = "total_ns as a share of the wall time"
avg_ns = "Mean length"
max_ns = "Longest"

[notes]
graphs.use = "idle_in_graphs"
*/
WITH length_classes(turn, length) AS (
    VALUES (0, 'under 1 µs'), (1, '1 to 2 µs'), (2, '2 to 5 µs'), (3, '5 to 10 µs'), (4, '10 to 20 µs'),
    (5, '20 to 50 µs'),
        (6, '50 to 100 µs'), (7, '100 µs to 1 ms'), (8, '1 to 10 ms'), (9, '10 ms and more')
),
gaps_by_length AS (
    SELECT
        gpu_id,
        CASE
            WHEN duration_ns < 1000 THEN 0
            WHEN duration_ns < 2000 THEN 1
            WHEN duration_ns < 5000 THEN 2
            WHEN duration_ns < 10000 THEN 3
            WHEN duration_ns < 20000 THEN 4
            WHEN duration_ns < 50000 THEN 5
            WHEN duration_ns < 100000 THEN 6
            WHEN duration_ns < 1000000 THEN 7
            WHEN duration_ns < 10000000 THEN 8
            ELSE 9
        END AS turn,
        count(*) AS gaps,
        sum(duration_ns)::BIGINT AS total_ns,
        max(duration_ns) AS max_ns
    FROM gpu_gaps
    GROUP BY ALL
)
SELECT
    c.gpu_id,
    s.length,
    c.gaps,
    c.total_ns,
    100.0 * c.total_ns / sum(c.total_ns) OVER (PARTITION BY c.gpu_id) AS idle_pct,
    100.0 * c.total_ns / (SELECT sum(duration_ns) FROM wall) AS wall_pct,
    c.total_ns / c.gaps AS avg_ns,
    c.max_ns
FROM gaps_by_length AS c
JOIN length_classes AS s USING (turn)
ORDER BY c.gpu_id, c.turn
