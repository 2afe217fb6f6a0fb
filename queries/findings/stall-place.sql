/*
code = "NSI106"
title = "The GPU stalls at one place in the program"
family = "launch"
overlaps = true
meaning = """
The GPU's long gaps are not spread over the run: they come before one operation, after one thing that the host does."""
evidence = [
    [
        "{stalled_steps} of {steps:step} {steps_verb} {stall_ns}, {times_a_step:time} each, before {after}",
        "{stalled_steps} of {steps:step} {steps_verb} {stall_ns} before {after}",
        "{stalled_steps} of {steps:step} {steps_verb}, {stalls:time} for {total_ns} in total, before {after}",
        "the GPU stalls {stalls:time} for {stall_ns} before {after}",
        "the GPU stalls {stalls:time}, in total {total_ns}, before {after}",
    ],
    ["in {call}", "{host_state}"],
]
caveat = """
It waits there for what it needs: other ranks, data, a user."""
effort = "function"
estimate = """
The idle time of these gaps."""
report = "gaps"
when = """
SELECT 1 FROM gpu_gaps WHERE duration_ns >= $long_gap_ns
HAVING 100 * sum(duration_ns) >= $least_pct * (SELECT sum(time_ns) FROM step_budget)"""

[cure]
any = "See what the program does there; nsys-insight gap-places lists all such places."

[params.long_gap_ns]
default = 100000
help = "Shortest gap that counts as a stall (as CPU work that is more than launching, in graph-candidates)"

[params.least_pct]
default = 3.0
help = "Share of the wall time from which a place is named (3: an improvement that is worth keeping)"
*/
WITH windows AS (
    SELECT step, start_ns, end_ns FROM steps WHERE phase = 'steady'
    UNION ALL
    SELECT NULL, start_ns, end_ns + 1 FROM wall WHERE NOT EXISTS (FROM steps WHERE phase = 'steady')
),
stalls AS (
    SELECT g.after_name, g.host, fold(g.nvtx_path) AS nvtx_path, g.duration_ns, o.step
    FROM gaps_report AS g ASOF JOIN windows AS o ON o.start_ns <= g.start_ns
    -- The time of a graph launch counts as launching; where its nodes are traced, as the profiler's.
    WHERE g.start_ns < o.end_ns AND g.duration_ns >= $long_gap_ns AND g.cause <> 'profiler'
        AND coalesce(g.host NOT LIKE 'graph launch: %', true)
),
longest_stall AS (
    SELECT
        after_name, host, nvtx_path, count(*) AS stalls, count(DISTINCT step) AS stalled_steps,
        (SELECT count(step) FROM windows) AS steps, sum(duration_ns)::DOUBLE AS total_ns,
        -- The median stands for all gaps if together they add up to about as much.
        CASE
            WHEN abs(count(*) * median(duration_ns) - sum(duration_ns)) <= 0.25 * sum(duration_ns)
                THEN median(duration_ns)
        END AS stall_ns
    FROM stalls
    GROUP BY after_name, host, nvtx_path
    QUALIFY row_number() OVER (ORDER BY total_ns DESC, after_name, host, nvtx_path) = 1
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
    s.nvtx_path AS place,
    nullif(s.stalled_steps, 0) AS stalled_steps,
    nullif(s.steps, 0) AS steps,
    CASE s.stalled_steps WHEN 1 THEN 'stalls' ELSE 'stall' END AS steps_verb,
    s.stalls, s.total_ns, s.stall_ns,
    CASE WHEN s.stalls > 1.5 * s.stalled_steps AND s.steps > 0 THEN s.stalls / s.stalled_steps END AS times_a_step,
    operation_text(s.after_name) AS after,
    CASE WHEN host LIKE 'OS: %' OR host LIKE '%: cu%' THEN regexp_replace(host, '^[^:]*: ', '') END AS call,
    CASE
        WHEN host = 'CPU work' THEN 'the CPU is busy outside of CUDA calls'
        WHEN host = 'launch latency' THEN 'its launch call had returned'
        WHEN host = 'managed memory' THEN 'the host touches managed memory'
        WHEN host = 'launch call under way' THEN 'its launch call was under way'
        WHEN host NOT LIKE 'OS: %' AND host NOT LIKE '%: cu%' THEN 'it was launched in time and waits on the GPU'
    END AS host_state
FROM longest_stall AS s, _step_totals AS t
WHERE 100 * s.total_ns >= $least_pct * t.wall_ns * t.units
