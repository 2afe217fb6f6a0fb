/*
title = "Loops of the program"
topic = "steps"
place = 11
question = "Which loops does the program run, and how long is an iteration of each?"
examples = ["", "--format json"]
main = [
    "loop", "step", "iterations", "period_ns", "gpu_busy_ns", "gpu_idle_ns", "paced_by", "launches", "operations",
    "gpu_pct", "contents",
]
description = """
Recovers the loops from the order in which the busiest process launches its operations: training steps, the layers in
a step, the requests around decoded tokens. Repetitions are folded from the inside out, and an iteration that differs
a little (a logged value, another kernel) still belongs to its loop. A period lasts from the first operation of an
iteration to the first one of the next, on the GPU: it has all the host work in between. Loops with less than a
thousandth of the GPU time are left out."""
reading = """
The row with a name in the column step is what steps, per-token and diagnose count: steps says why. A period that is
much longer than gpu_busy_ns leaves the GPU idle: gaps shows where. Many launches with a short period inside a step
are layers: fusion and graph-candidates look at these. loop-iteration --loop 2.1 lists one
iteration of that loop."""
empty = "No loops: the process repeats nothing that holds a thousandth of its GPU time"

[shares]
gpu_pct = "the GPU time of the process"

[columns]
loop = "Number of the loop; 1.2 is the second loop inside loop 1"
step = """\
What an iteration of the loop that steps, per-token and diagnose count is called: step; NULL in the others, and in all \
where NVTX ranges are the steps"""
iterations = "Iterations in total"
per_parent = "Iterations in each iteration of the loop around it, median"
period_ns = "Time from the start of an iteration to the start of the next one, median"
period_low_ns = "Time from one iteration to the next, first quartile"
period_high_ns = "Time from one iteration to the next, third quartile"
gpu_busy_ns = "Time of an iteration in which the GPU was busy, median"
gpu_idle_ns = "Time of an iteration in which the GPU was idle, median"
communication_ns = "Time of an iteration in which only communication ran on the GPU, median"
host_ns = "Time of the host from the start of an iteration to the next one, without its waits for the GPU, median"
paced_by = """\
What the period is made of: GPU (busy for 90% of it), communication (alone for half of it), host (the thread that \
launches, for 90% of it: its work, or a wait that the trace does not show), outside event (it sleeps or polls for \
half of the idle time), GPU and host in turn (their times add up to it); NULL where none of these is clear, and in \
loops inside of three others"""
launches = "Kernels and graphs that an iteration launches, median"
operations = "Operations of an iteration: kernels, copies, memsets and graphs, median"
gpu_pct = "Share of the GPU time"
nvtx = "The NVTX ranges that its iterations begin in, one for each; # stands for numbers"
contents = "The operations and inner loops of an iteration that take most time, in their order"
*/
WITH operations AS (
    SELECT
        loop, position,
        CASE WHEN repeats > 1 THEN repeats || ' × ' ELSE '' END
            || coalesce('loop ' || inner_loop, kernel_base_name(k.name), label, kind) AS operation,
        row_number() OVER (PARTITION BY loop ORDER BY inner_loop IS NULL, duration_ns DESC, position) AS turn
    FROM loop_operations AS o
    LEFT JOIN kernel_names AS k USING (name_id)
    WHERE kind <> 'wait'
),
contents AS (
    SELECT loop, string_agg(operation, ', ' ORDER BY position) AS contents FROM operations WHERE turn <= 4 GROUP BY loop
),
ranges AS (
    SELECT regexp_replace(name, '[0-9]+', '#', 'g') AS nvtx, start_ns, duration_ns
    FROM nvtx_ranges
    WHERE process_id IN (SELECT process_id FROM loops) AND NOT starts_with(name, 'nccl')
),
iteration_starts AS (
    SELECT
        loop, host_start_ns AS start_ns,
        coalesce(
            lag(host_start_ns) OVER (PARTITION BY loop ORDER BY host_start_ns), -9223372036854775807
        ) AS previous_ns
    FROM loop_iterations
),
-- Ranges that are about as many as the iterations.
candidates AS (
    SELECT l.loop, l.iterations, r.nvtx, r.mean_ns
    FROM loops AS l
    JOIN (SELECT nvtx, count(*) AS ranges, avg(duration_ns) AS mean_ns FROM ranges GROUP BY nvtx) AS r
        ON r.ranges BETWEEN 0.9 * l.iterations AND 1.1 * l.iterations
),
loop_ranges AS (
    SELECT c.loop, c.nvtx
    FROM (SELECT i.*, c.nvtx, c.iterations, c.mean_ns FROM iteration_starts AS i JOIN candidates AS c USING (loop)) AS c
    ASOF JOIN ranges AS r ON r.nvtx = c.nvtx AND r.start_ns <= c.start_ns
    WHERE r.start_ns > c.previous_ns
    GROUP BY c.loop, c.nvtx
    HAVING count(*) >= 0.8 * any_value(c.iterations)
    QUALIFY row_number() OVER (PARTITION BY c.loop ORDER BY any_value(c.mean_ns) DESC, c.nvtx) = 1
),
-- Waits for the GPU on the threads of the process, and its sleeps and polls, each in the iteration that it starts in.
host_pauses AS (
    SELECT process_id, start_ns, wait_ns, 0 AS sleep_ns FROM waits
    UNION ALL
    SELECT process_id, start_ns, 0, duration_ns
    FROM os_calls
    WHERE is_sleep_or_poll(name)
        AND (process_id, thread_id) IN (
            SELECT (process_id, mode(thread_id)) FROM api_calls WHERE call_group LIKE '%launch' GROUP BY process_id
        )
),
pauses_by_iteration AS (
    SELECT i.loop, i.run, i.iteration, sum(p.wait_ns) AS wait_ns, sum(p.sleep_ns) AS sleep_ns
    FROM (
        SELECT p.*, l.loop FROM host_pauses AS p JOIN loops AS l ON l.process_id = p.process_id AND l.depth <= 2
    ) AS p
    ASOF JOIN loop_iterations AS i ON i.loop = p.loop AND i.host_start_ns <= p.start_ns
    WHERE p.start_ns < i.host_end_ns
    GROUP BY ALL
),
host_times AS (
    SELECT
        loop, median(i.host_end_ns - i.host_start_ns - coalesce(p.wait_ns, 0)) AS host_ns,
        median(coalesce(p.sleep_ns, 0)) AS sleep_ns
    FROM loop_iterations AS i
    LEFT JOIN pauses_by_iteration AS p USING (loop, run, iteration)
    WHERE i.host_end_ns < 9223372036854775807 AND len(string_split(loop, '.')) <= 3
    GROUP BY loop
)
SELECT
    loop,
    m.unit AS step,
    iterations,
    per_parent,
    period_ns,
    period_low_ns,
    period_high_ns,
    gpu_busy_ns,
    gpu_idle_ns,
    communication_ns,
    host_ns,
    CASE
        WHEN host_ns IS NULL THEN NULL
        WHEN 2 * communication_ns >= period_ns THEN 'communication'
        WHEN gpu_busy_ns >= 0.9 * period_ns THEN 'GPU'
        WHEN sleep_ns >= 0.5 * gpu_idle_ns THEN 'outside event'
        WHEN host_ns BETWEEN 0.9 * period_ns AND 1.1 * period_ns THEN 'host'
        WHEN gpu_busy_ns + host_ns BETWEEN 0.85 * period_ns AND 1.1 * period_ns
            AND least(gpu_busy_ns, host_ns) >= 0.1 * period_ns
            THEN 'GPU and host in turn'
    END AS paced_by,
    launches,
    operations,
    100 * gpu_share AS gpu_pct,
    nvtx,
    contents
FROM loops
LEFT JOIN (SELECT loop, unit FROM step_method) AS m USING (loop)
LEFT JOIN loop_ranges USING (loop)
LEFT JOIN contents USING (loop)
LEFT JOIN host_times USING (loop)
ORDER BY list_transform(string_split(loop, '.'), lambda part: part::BIGINT)
