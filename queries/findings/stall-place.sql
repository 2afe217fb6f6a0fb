/*
code = "NSI106"
title = "The GPU stalls at one place in the program"
family = "launch"
is_host_work = true
symptom = "start"
overlaps = true
meaning = "The GPU has long gaps before one operation, and the host does the same in each of them."
evidence = [
    [
        "in {stalled_steps} of {steps:step}, the GPU stalls before {after}",
        "in at least {least_stalled_steps} of {steps:step}, the GPU stalls before {after}",
        "the GPU stalls before {after}",
    ],
    [
        "{stalls:stall} of {stall_ns} (median)", "{stalls:stall}, {total_ns} in total",
        "at least {least_stalls:stall}, {least_total_ns} in total",
    ],
    [
        "the CPU is in {call} for most of each",
        "{?is_cpu_work}the CPU is outside CUDA calls for most of each",
        "{?is_launch_latency}most of each comes after the launch call has returned",
        "{?is_stream_wait}most of each is a wait of the operation's stream on the GPU",
        "{?is_staged_copy}most of each is a copy between GPUs that goes through host memory",
        "{?is_managed_memory}the host touches managed memory, whose pages migrate",
        "{?is_launch_begun}the launch call had begun before",
        """{?is_launched_before}the launch was in time: the operation waits for another GPU or process, or for what has
        no row, such as kernels that a kernel launches, or a function on the host""",
        """{?follows_turns}the launch was in time, and {contexts} CUDA contexts take turns on the GPU: the operation may
        wait for its turn""",
        """{?follows_host_functions}the launch was in time, and streams of the program run functions on the
        host (cudaLaunchHostFunc), for which the operation may wait""",
        """{?follows_values}the launch was in time, and streams of the program wait for a value in memory
        ({value_call}), for which the operation may wait""",
    ],
]
skip_if = "It waits there for what it needs: other ranks, data or a user."
effort = "function"
estimate = "The idle time of these gaps."
report = "gaps"
when = """
SELECT 1 FROM gpu_gaps WHERE duration_ns >= $long_gap_ns
HAVING 100 * sum(duration_ns) >= $min_pct * (SELECT sum(time_ns) FROM step_budget)"""

[fix]
any = "See what the program does there; nsys-insight gap-places lists all such places."

[params]
long_gap_ns = [100000,
    "Shortest gap that counts as a stall (as CPU work that is more than launching, in graph-candidates)"]
min_pct = [3.0, "Share of the wall time from which a place is named (3: an improvement that is worth keeping)"]
*/
-- Gaps on the GPUs of the steps, up to the end of the last one.
WITH step_gaps AS (
    SELECT * REPLACE (least(end_ns, (SELECT max(end_ns) FROM _steady_windows)) - start_ns AS duration_ns)
    FROM gaps_report
    WHERE NOT EXISTS (FROM step_gpus WHERE phase = 'steady')
        OR gpu_id IN (SELECT gpu_id FROM step_gpus WHERE phase = 'steady')
),
stalls AS (
    SELECT g.after_name, g.host, fold(g.nvtx_path) AS nvtx_path, g.duration_ns, o.step
    FROM step_gaps AS g ASOF JOIN _steady_windows AS o ON o.start_ns <= g.start_ns
    -- The time of a graph launch counts as launching; where its nodes are traced, as the profiler's.
    WHERE g.start_ns < o.end_ns AND g.duration_ns >= $long_gap_ns AND g.cause <> 'profiler'
        AND coalesce(g.host NOT LIKE 'graph launch: %', true)
),
longest_stall AS (
    SELECT
        after_name, host, nvtx_path, count(*) AS stalls, count(DISTINCT step) AS stalled_steps,
        (SELECT count(step) FROM _steady_windows) AS steps, sum(duration_ns)::DOUBLE AS total_ns,
        -- The median stands for all gaps if together they add up to about as much.
        CASE
            WHEN count(*) > 1 AND abs(count(*) * median(duration_ns) - sum(duration_ns)) <= 0.25 * sum(duration_ns)
                THEN median(duration_ns)
        END AS stall_ns
    FROM stalls GROUP BY after_name, host, nvtx_path
    QUALIFY row_number() OVER (ORDER BY total_ns DESC, after_name, host, nvtx_path) = 1
),
-- The report gaps lists the longest gaps only: if there are others that are stalls, the numbers are lower bounds.
listed_gaps AS (
    SELECT
        (SELECT count(*) FROM gaps_report WHERE duration_ns >= $long_gap_ns)
            = (SELECT count(*) FROM gpu_gaps WHERE duration_ns >= $long_gap_ns) AS are_all
)
SELECT
    s.total_ns / t.units AS recoverable_ns,
    100 * s.total_ns / (t.wall_ns * t.units) AS wall_pct,
    -- The family of the finding that has this time.
    CASE
        WHEN host LIKE 'alloc: %' OR host LIKE 'free: %' THEN 'allocation'
        WHEN host LIKE 'sync: %' THEN 'sync'
        WHEN host LIKE 'copy: %' THEN 'copy'
    END AS family,
    -- Only fewer allocations make a stall shorter that an allocation or a free causes.
    CASE WHEN coalesce(host NOT SIMILAR TO '(alloc|free): .*', true) THEN 'start' END AS symptom,
    s.nvtx_path AS place,
    CASE WHEN l.are_all THEN nullif(s.stalled_steps, 0) END AS stalled_steps,
    CASE WHEN NOT l.are_all THEN nullif(s.stalled_steps, 0) END AS least_stalled_steps,
    nullif(s.steps, 0) AS steps,
    CASE WHEN l.are_all THEN s.stalls END AS stalls,
    CASE WHEN NOT l.are_all THEN s.stalls END AS least_stalls,
    CASE WHEN l.are_all THEN s.total_ns END AS total_ns,
    CASE WHEN NOT l.are_all THEN s.total_ns END AS least_total_ns,
    CASE WHEN l.are_all THEN s.stall_ns END AS stall_ns,
    operation_text(s.after_name) AS after,
    CASE WHEN host LIKE '%: %' THEN regexp_replace(host, '^[^:]*: ', '') END AS call,
    host = 'CPU work' AS is_cpu_work, host = 'launch latency' AS is_launch_latency,
    host = 'stream wait' AS is_stream_wait, host = 'staged copy' AS is_staged_copy,
    host = 'managed memory' AS is_managed_memory, host = 'launch call in progress' AS is_launch_begun,
    host = 'launched before the gap' AS is_launched,
    is_launched AND f.are_none AND u.contexts IS NULL AS is_launched_before,
    is_launched AND f.are_none AND u.contexts IS NOT NULL AS follows_turns, u.contexts,
    is_launched AND f.are_functions AS follows_host_functions,
    is_launched AND f.value_call IS NOT NULL AS follows_values, f.value_call
FROM longest_stall AS s, _step_totals AS t, listed_gaps AS l, _silent_waits AS f,
    (SELECT max(contexts_in_turn) AS contexts FROM _other_processes) AS u
WHERE 100 * s.total_ns >= $min_pct * t.wall_ns * t.units
