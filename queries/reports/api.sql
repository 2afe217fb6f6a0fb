/*
title = "CUDA API calls by host time"
topic = "program"
place = 3
question = "Which CUDA API calls take the host's time?"
examples = ["", "--group-by caller"]
aliases = ["cuda_api_sum"]
main = ["api_time_pct", "total_ns", "calls", "avg_ns", "name", "med_ns", "max_ns", "wall_pct"]
description = """
Adds up the time that the host spent in CUDA API calls, runtime and driver, by function name. A call made inside
another call is left out, so that no time counts twice. A call that begins between --from and --to counts with its
full duration. api_time_pct is the share of all API time in scope, wall_pct the share of the wall time (calls of
several threads may add up to more than 100%). Counts are lower bounds: nsys leaves out calls that it finds
unimportant unless it traces with --cuda-trace-all-apis=true. Calls take longer under the profiler than without it."""
reading = """
Time in sync calls (and in blocking cudaMemcpy) is waiting: that is fine while the GPU is busy, otherwise see syncs.
Launch calls that take nearly all of the wall time mean launch-bound: fuse kernels or use a CUDA graph, see
launches. Allocations after the start: see mallocs. A max far above the median is often the first call, which
creates the context or loads a module."""
empty = "No CUDA API calls are recorded in this scope"
advice = "if the program did use CUDA, capture with: nsys profile -t cuda"

[params.group_by]
default = "call"
choices = ["call", "caller", "stack"]
help = "What one row stands for: the function"

[columns]
name = "The function, without its version suffix (_v7000, _ptsz), or what --group-by selects"
calls = "Calls in scope"
total_ns = "Sum of their durations"
avg_ns = "Mean duration"
med_ns = "Median duration"
min_ns = "Shortest"
max_ns = "Longest"
stddev_ns = "Sample standard deviation of the durations; NULL for a single call"
api_time_pct = "Share of all API time in scope"
wall_pct = "total_ns as a share of the wall time"
failed_count = """\
Calls that returned an error; 'not ready' (600), which a query of unfinished work returns, is not counted"""
call_group = """\
What the calls are for: launch, graph launch, sync, copy, memset, alloc, free, graph, event, module, other"""

[notes]
device.use = "all_devices"

[ranks]
by = ["name", "call_group"]
spread = "total_ns"
sum = ["calls", "total_ns", "failed_count"]
mean = ["api_time_pct", "wall_pct"]
min = ["min_ns"]
max = ["max_ns"]
ratio = { avg_ns = ["total_ns", "calls"] }
*/
WITH grouped_calls AS (
    SELECT name, call_group, duration_ns, return_value FROM outer_api_calls WHERE $group_by = 'call'
    UNION ALL
    SELECT coalesce(p.name, '(no backtrace)'), a.call_group, a.duration_ns, a.return_value
    FROM outer_api_calls AS a LEFT JOIN call_places AS p USING (process_id, correlation_id)
    WHERE $group_by = 'caller'
    UNION ALL
    SELECT coalesce(p.name, '(no backtrace)'), a.call_group, a.duration_ns, a.return_value
    FROM outer_api_calls AS a LEFT JOIN _call_stacks($stack) AS p USING (process_id, correlation_id)
    WHERE $group_by = 'stack'
),
call_totals AS (
    SELECT
        name,
        call_group,
        count(*) AS calls,
        sum(duration_ns)::BIGINT AS total_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS stddev_ns,
        quantile_cont(duration_ns, 0.5) AS med_ns,
        CASE WHEN count(return_value) > 0 THEN count(*) FILTER (WHERE return_value NOT IN (0, 600)) END AS failed_count
    FROM grouped_calls
    GROUP BY name, call_group
)
SELECT
    coalesce(name, '(no name)') AS name,
    calls,
    total_ns,
    total_ns / calls AS avg_ns,
    med_ns,
    min_ns,
    max_ns,
    stddev_ns,
    100.0 * total_ns / nullif((SELECT sum(total_ns) FROM call_totals), 0) AS api_time_pct,
    100.0 * total_ns / (SELECT sum(duration_ns) FROM wall) AS wall_pct,
    failed_count,
    call_group
FROM call_totals
ORDER BY total_ns DESC, name, call_group
