/*
title = "One iteration of a loop, in order"
topic = "steps"
place = 12
question = "What does one iteration of a loop launch, in which order, and where does the GPU wait in it?"
examples = ["--loop 2.1", "--around gap"]
page = false
main = ["position", "repeats", "gap_ns", "duration_ns", "offset_ns", "gpu_offset_ns", "name", "call"]
details = ["kind", "thread_id", "device_id", "stream_id", "call_ns"]
description = """
A typical iteration of one of `loops` on one time axis: its API calls, and what they run on the GPU. It is one of those
with the most frequent sequence of operations, the one with the median duration. Equal operations that follow each other
are one row, and so is an inner loop; the columns of a call are those of the first one then. The order is that of the
calls on the host. With --around, the rows are calls of all threads instead: those around the longest idle time of a GPU
in the iterations of the loop, those of its longest iteration, or those around its longest NCCL kernel. Calls inside
others, and names of kernels that the program looks up, are left out."""
reading = """
Rows with a gap_ns longer than their duration wait for the host or for another stream. gpu_offset_ns just after
offset_ns: the GPU waits for the launch; much later: the operation waits in the queue. An inner loop has its own
iteration: --loop with its number."""
empty = "There is no such loop or event: nsys-insight loops lists the loops"

[params.loop]
type = "text"
noun = "loop"
names = "SELECT loop FROM loops ORDER BY 1"
help = "The loop's number in loops, such as 1 or 1.2 (default: the outermost loop with the most GPU time)"

[params.around]
default = "iteration"
choices = ["iteration", "gap", "outlier", "collective"]
help = "What to show: an iteration, or the calls around the longest gap, of the longest iteration, around a collective"

[columns]
position = "Position in the list, from 0"
repeats = "Number of times that the row follows itself, or iterations of the inner loop"
gap_ns = "Time in which no GPU was busy between the operations before it and its start; with --around, of its own GPU"
duration_ns = "Sum of the durations on the GPU; of a call that runs nothing there, the duration of the call"
offset_ns = "From the start of the list on the host to its call"
name = "The kernel, copy, memset or graph, or the call that runs none of these; of an inner loop, its number"
kind = "kernel, copy, memset, graph, call or loop"
call = "The call that launched it; NULL for loops and where the trace lacks it"
call_ns = "Duration of that call on the host"
gpu_offset_ns = "From the start of the list on the host to its start on the GPU; NULL for calls that run nothing there"
thread_id = "Thread that called"
device_id = "CUDA device of the operation"
stream_id = "CUDA stream of the operation"

[notes]
which.text = "loop {loop}: {iterations:iteration}, one every {period_ns}<; steps counts them, each as one {unit}>"
which.query = """
SELECT loop, iterations, period_ns, (SELECT m.unit FROM step_method AS m WHERE m.loop = l.loop) AS unit
FROM loops AS l WHERE $around = 'iteration' AND loop = (
    SELECT coalesce($loop, arg_max(loop, gpu_share) FILTER (depth = 0)) FROM loops
)"""

gap.text = "these are the calls around the longest idle time of a GPU, in loop {loop}"
gap.query = """
SELECT coalesce($loop, (SELECT arg_max(loop, gpu_share) FILTER (depth = 0) FROM loops)) AS loop
FROM answer WHERE $around = 'gap' HAVING count(*) > 0"""

outlier.text = "these are the calls of the longest iteration of loop {loop}"
outlier.query = """
SELECT coalesce($loop, (SELECT arg_max(loop, gpu_share) FILTER (depth = 0) FROM loops)) AS loop
FROM answer WHERE $around = 'outlier' HAVING count(*) > 0"""

collective.text = "these are the calls around the longest NCCL kernel of loop {loop}"
collective.query = """
SELECT coalesce($loop, (SELECT arg_max(loop, gpu_share) FILTER (depth = 0) FROM loops)) AS loop
FROM answer WHERE $around = 'collective' HAVING count(*) > 0"""
*/
WITH chosen_loop AS (
    SELECT coalesce($loop, arg_max(loop, gpu_share) FILTER (depth = 0)) AS loop FROM loops
),
chosen_iterations AS (
    SELECT i.*, l.process_id
    FROM loop_iterations AS i JOIN loops AS l ON l.loop = i.loop JOIN chosen_loop AS c ON c.loop = i.loop
),
iteration_operations AS (
    SELECT o.* FROM loop_operations AS o JOIN chosen_loop AS c ON c.loop = o.loop WHERE $around = 'iteration'
),
longest_gap AS (
    SELECT g.process_id, g.correlation_id
    FROM _explained_gaps AS g
    ASOF JOIN chosen_iterations AS i ON i.start_ns <= g.start_ns
    WHERE $around = 'gap' AND g.start_ns < i.end_ns
    ORDER BY g.duration_ns DESC, g.gap_id
    LIMIT 1
),
longest_collective AS (
    SELECT k.process_id, k.correlation_id
    FROM kernel_events AS k
    JOIN kernel_names AS n ON n.name_id = k.name_id
    ASOF JOIN chosen_iterations AS i ON i.start_ns <= k.start_ns
    WHERE $around = 'collective' AND n.family = 'comm' AND k.start_ns < i.done_ns
    ORDER BY k.duration_ns DESC, k.start_ns
    LIMIT 1
),
-- The last iteration of a run has no end.
shown_iteration AS (
    SELECT host_start_ns AS start_ns, host_end_ns AS end_ns
    FROM chosen_iterations
    WHERE $around = 'outlier' AND host_end_ns < 9223372036854775807
        OR host_start_ns = (SELECT min(host_start_ns) FROM iteration_operations)
    ORDER BY host_end_ns - host_start_ns DESC, host_start_ns
    LIMIT 1
),
event_calls AS (
    FROM longest_gap UNION ALL FROM longest_collective
),
numbered_calls AS (
    SELECT a.*, row_number() OVER (ORDER BY a.start_ns, a.correlation_id) AS number
    FROM outer_api_calls AS a
    WHERE a.process_id IN (SELECT process_id FROM loops)
        AND NOT regexp_matches(
            a.name, '^cu(Kernel|Func|Module|Library)Get|^cuda(GetFuncBySymbol|GetDevice|GetLastError)'
        )
),
event_number AS (
    SELECT min(n.number) AS number
    FROM numbered_calls AS n JOIN event_calls AS e USING (process_id, correlation_id)
),
shown_calls AS (
    SELECT n.*
    FROM numbered_calls AS n
    LEFT JOIN event_number AS e ON true
    LEFT JOIN shown_iteration AS w ON true
    WHERE n.number BETWEEN e.number - 12 AND e.number + 12 OR n.start_ns >= w.start_ns AND n.start_ns < w.end_ns
),
-- Each call with what it ran: a graph launch ran many kernels.
calls_with_operations AS MATERIALIZED (
    SELECT
        c.number, c.start_ns, c.duration_ns AS call_ns, c.name AS call, c.call_group, c.thread_id, o.kind, o.name,
        o.gpu_start_ns, o.gpu_ns, o.device_id, o.stream_id
    FROM shown_calls AS c
    LEFT JOIN (
        SELECT
            g.process_id, g.correlation_id, min(g.start_ns) AS gpu_start_ns, sum(g.duration_ns)::BIGINT AS gpu_ns,
            any_value(g.device_id) AS device_id, any_value(g.stream_id) AS stream_id,
            CASE WHEN count(*) = 1 THEN any_value(g.kind) ELSE 'graph' END AS kind,
            CASE
                WHEN count(*) = 1 THEN any_value(coalesce(n.name, g.label))
                ELSE 'CUDA graph of ' || count(*)
            END AS name
        FROM gpu_ops AS g LEFT JOIN kernel_names AS n USING (name_id)
        GROUP BY ALL
    ) AS o USING (process_id, correlation_id)
),
iteration_rows AS (
    SELECT
        o.host_start_ns AS start_ns, o.position AS turn, o.repeats, o.gap_ns, o.duration_ns,
        coalesce('loop ' || o.inner_loop, k.name, o.label) AS name,
        CASE WHEN o.kind = 'wait' THEN 'call' ELSE o.kind END AS kind,
        CASE WHEN o.kind <> 'loop' THEN c.call END AS call,
        CASE WHEN o.kind <> 'loop' THEN c.call_ns END AS call_ns,
        CASE WHEN o.kind <> 'wait' THEN o.start_ns END AS gpu_start_ns,
        CASE WHEN o.kind <> 'loop' THEN c.thread_id END AS thread_id,
        CASE WHEN o.kind NOT IN ('loop', 'wait') THEN c.device_id END AS device_id,
        CASE WHEN o.kind NOT IN ('loop', 'wait') THEN c.stream_id END AS stream_id
    FROM iteration_operations AS o
    LEFT JOIN kernel_names AS k ON k.name_id = o.name_id
    LEFT JOIN calls_with_operations AS c ON c.start_ns = o.host_start_ns
    UNION ALL
    -- Other calls of the iteration, unless they are in an inner loop.
    SELECT
        c.start_ns, NULL, 1, 0, c.call_ns, c.call, 'call', c.call, c.call_ns, NULL, c.thread_id, NULL, NULL
    FROM calls_with_operations AS c
    ASOF JOIN iteration_operations AS o ON o.host_start_ns <= c.start_ns
    WHERE c.kind IS NULL AND c.call_group NOT IN ('launch', 'graph launch', 'copy', 'memset') AND o.kind <> 'loop'
        AND o.host_start_ns <> c.start_ns
),
event_rows AS (
    SELECT
        c.start_ns, c.number AS turn, 1 AS repeats, coalesce(g.gap_ns, 0) AS gap_ns,
        coalesce(c.gpu_ns, c.call_ns) AS duration_ns, coalesce(c.name, c.call) AS name,
        coalesce(c.kind, 'call') AS kind,
        c.call, c.call_ns, c.gpu_start_ns, c.thread_id, c.device_id, c.stream_id
    FROM calls_with_operations AS c
    LEFT JOIN (SELECT next_ns, max(duration_ns) AS gap_ns FROM gpu_gaps GROUP BY next_ns) AS g
        ON g.next_ns = c.gpu_start_ns
    WHERE $around <> 'iteration'
),
ordered_rows AS (
    SELECT
        *, row_number() OVER (ORDER BY start_ns, turn NULLS LAST, name)
            - row_number() OVER (
                PARTITION BY kind, name, call, thread_id, device_id, stream_id, kind = 'loop'
                ORDER BY start_ns, turn NULLS LAST, name
            ) AS run
    FROM (FROM iteration_rows UNION ALL FROM event_rows)
),
folded_rows AS (
    SELECT
        min(start_ns) AS start_ns, min(turn) AS turn, sum(repeats)::BIGINT AS repeats, sum(gap_ns)::BIGINT AS gap_ns,
        sum(duration_ns)::BIGINT AS duration_ns, name, kind, call, arg_min(call_ns, start_ns) AS call_ns,
        min(gpu_start_ns) AS gpu_start_ns, thread_id, device_id, stream_id
    FROM ordered_rows
    GROUP BY name, kind, call, thread_id, device_id, stream_id, run
)
SELECT
    row_number() OVER (ORDER BY start_ns, turn NULLS LAST, name) - 1 AS position,
    repeats,
    gap_ns,
    duration_ns,
    start_ns - (SELECT min(start_ns) FROM folded_rows) AS offset_ns,
    name,
    kind,
    call,
    call_ns,
    gpu_start_ns - (SELECT min(start_ns) FROM folded_rows) AS gpu_offset_ns,
    thread_id,
    device_id,
    stream_id
FROM folded_rows
ORDER BY position
