/*
code = "NSI405"
title = "One operation limits the step"
family = "kernels"
symptom = "kernel-time"
overlaps = true
meaning = "Speeding this up shortens the step the most, until a parallel operation becomes the bottleneck."
evidence = [
    "{operation} holds the critical path of a step for {path_ns} of {step_ns}",
    [
        "replayed without it, the step under nsys is {host_limited_ns} shorter",
        "without it the step is {saved_ns} shorter, and {half_saved_ns} if it takes half of its time",
        "without it the step is {saved_ns} shorter, and as much if it takes half the time",
    ],
    "then {next_operation} takes over",
    "{?is_host_limited}nsys makes the host slower",
]
skip_if = "It waits for something that the trace does not show."
effort = "function"
estimate = """
High: the step is replayed without the operation, with all its dependencies. Where the host takes over then, which nsys
makes slower: what the host leaves if it is as fast as it may be without nsys. No low end: the operation may be as fast
as it can be."""
report = "critical-path"
when = """
SELECT 1 FROM step_budget
HAVING sum(time_ns) FILTER (part IN ('gpu', 'copy') AND host IS NULL) >= $min_busy * sum(time_ns)
    AND coalesce(sum(time_ns) FILTER (part = 'communication'), 0) < $max_communication * sum(time_ns)"""

[fix]
any = "Make it faster. Beyond this saving, the operation that takes over limits the step: critical-path lists both."

[params]
min_pct = [3.0, "Share of the wall time that it must save (3: an improvement that is worth keeping)"]
min_busy = [0.5, """Share of the wall time in which the GPU must be busy (0.5: otherwise the savings are in idle time,
    which other findings report)"""]
max_communication = [0.01,
    "Share of the wall time in which only communication runs: its duration also depends on other ranks"]
max_of_own = [0.9, """Largest share of its time on the path that it saves: where all of it is saved, hot-kernels and
    copy-bound report it"""]
min_errors = [2.0, "It must save this many times the difference between replayed and recorded steps"]
*/
WITH best_saving AS (
    FROM critical_path WHERE saved_ns IS NOT NULL ORDER BY saved_ns DESC, kind, name, nvtx_path LIMIT 1
),
wall_time AS (
    SELECT w.time_ns, m.tokens_per_step AS tokens
    FROM (FROM classify_report WHERE part = 'wall') AS w
    CROSS JOIN step_method AS m
)
SELECT
    regexp_matches(b.takes_over, '^(CPU work|API call)') AS is_host_limited,
    greatest(b.saved_ns / w.tokens, if(is_host_limited, least(b.path_ns / w.tokens, l.high_limit_ns), 0))
        AS recoverable_ns,
    100 * recoverable_ns / w.time_ns AS wall_pct,
    NULL AS place,
    CASE WHEN b.kind = 'copy' THEN 'copy' END AS family,
    operation_text(b.name) AS operation,
    b.path_ns,
    r.measured_ns AS step_ns,
    b.saved_ns,
    if(is_host_limited, b.saved_ns, NULL) AS host_limited_ns,
    CASE WHEN b.half_saved_ns < 0.95 * b.saved_ns THEN b.half_saved_ns END AS half_saved_ns,
    CASE
        WHEN b.takes_over LIKE 'kernel: %' OR b.takes_over LIKE 'copy: %'
            THEN regexp_replace(b.takes_over, '^\w+: ', '')
        ELSE b.takes_over
    END AS next_operation
FROM best_saving AS b
CROSS JOIN critical_path_run AS r
CROSS JOIN wall_time AS w
CROSS JOIN _step_limits AS l
-- The host's part is already reported through the idle time that it causes.
WHERE r.reason IS NULL AND b.kind IN ('kernel', 'copy', 'memset', 'graph') AND b.takes_over IS NOT NULL
    AND b.saved_ns <= $max_of_own * b.path_ns
    AND 100 * b.saved_ns >= $min_pct * r.measured_ns
    AND b.saved_ns >= $min_errors * abs(r.played_ns - r.measured_ns)
    AND coalesce((SELECT sum(path_ns) FROM critical_path WHERE kind = 'communication'), 0)
        <= $max_communication * r.measured_ns
