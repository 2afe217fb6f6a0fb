/*
title = "Launch breakdown: API call, queue, kernel"
topic = "idle"
place = 5
question = "How long do launch calls take, how long do kernels queue, and is the step launch-bound?"
examples = ["", "--group-by caller"]
aliases = ["cuda_kern_exec_sum"]
main = ["name", "total_avg_ns", "calls", "api_avg_ns", "queue_avg_ns", "kernel_avg_ns", "api_kernel_ratio"]
description = """
Follows each kernel from its launch call through the queue to the GPU, by kernel and launching function: total = api
+ queue + kernel. api is the host's time in the call, queue from the call's return to the kernel's start, kernel its
time on the GPU, total from the call's start until both call and kernel have ended. A kernel that starts before its
call has returned has no queue time; queued_count is the number of kernels that have one. Kernels of a CUDA graph
share one call, so they have no api, queue or total time of their own. Under the profiler launch calls take longer
than without it, often by a third."""
reading = """
A long queue is good: the CPU is ahead and the GPU never waits. A queue of a few microseconds (the launch latency
itself) with an api_kernel_ratio above 1 is launch-bound: the kernel takes less time than its launch. Launch fewer
kernels: fuse them, or capture the step in a CUDA graph. Rows are sorted by api_total_ns, what each kernel costs the
CPU."""
empty = "No kernels are recorded in this scope"
advice = "if the program did use the GPU, capture with: nsys profile -t cuda"

[params.group_by]
default = "kernel"
choices = ["kernel", "caller", "stack"]
help = "What one row stands for: the kernel"

[columns]
name = "The kernel, or what --group-by selects"
calls = "Executions on the GPU"
api_total_ns = "Sum of the durations of the launch calls"
api_avg_ns = "Mean duration of the launch call"
api_med_ns = "Median duration of the launch call"
queue_avg_ns = "Mean queue time of the kernels that have one"
queue_med_ns = "Median queue time of the kernels that have one"
queue_max_ns = "Longest queue time"
queued_count = "Kernels that started after their launch call had returned"
kernel_total_ns = "Sum of the kernel's durations on the GPU"
kernel_avg_ns = "Mean duration of the kernel"
kernel_med_ns = "Median duration of the kernel"
total_avg_ns = "Mean time from the start of the launch call until both call and kernel have ended"
api_kernel_ratio = "api_total_ns / kernel_total_ns: above 1, launching takes longer than running"
api_name = "The launching function; NULL where the trace does not have the call"

[notes]
coverage.text = """
{known} of {calls:kernel has|kernels have} a known launch call in the {place}; for the others, only the kernel is
measured"""
coverage.query = """
SELECT
    coalesce(sum(calls) FILTER (WHERE api_name IS NOT NULL), 0) AS known, sum(calls) AS calls,
    CASE WHEN any_value(scope.from_ns) IS NULL THEN 'trace' ELSE 'scope' END AS place
FROM answer, scope HAVING count(*) > count(api_name)"""

repeats.text = "correlation ids are used again or missing: the queue times of {calls:launch call} are not stated"
repeats.query = """
SELECT count(*) AS calls
FROM outer_api_calls
WHERE call_group IN ('launch', 'graph launch') AND correlation_id IS NULL
    AND EXISTS (FROM answer WHERE api_name IS NULL)
HAVING count(*) > 0"""

graphs.text = """
{kernels:kernel} ran in {launches:launch|launches} of CUDA graphs, {launch_ns} of host time each ({kernel_ns} a
kernel)"""
graphs.query = """
SELECT
    any_value(answer.kernels) AS kernels, count(*) AS launches, sum(g.duration_ns) / count(*) AS launch_ns,
    sum(g.duration_ns) / any_value(answer.kernels) AS kernel_ns
FROM api_calls AS g
JOIN (
    SELECT api_name, (SELECT sum(calls) FROM answer WHERE api_name IS NOT NULL AND queued_count IS NULL) AS kernels
    FROM answer
    WHERE api_name IS NOT NULL AND queued_count IS NULL
    GROUP BY ALL
) AS answer
    ON answer.api_name = g.name
HAVING count(*) > 0"""

whole_graphs.use = "whole_graphs"
*/
WITH grouped_launches AS (
    SELECT
        name_id, NULL AS place, api_name, call_group, duration_ns, api_duration_ns, queue_ns, end_ns, api_start_ns,
        api_end_ns
    FROM launches
    WHERE $group_by = 'kernel'
    UNION ALL
    SELECT
        NULL, coalesce(p.name, '(no backtrace)'), api_name, call_group, duration_ns, api_duration_ns, queue_ns, end_ns,
        api_start_ns, api_end_ns
    FROM launches LEFT JOIN call_places AS p USING (process_id, correlation_id)
    WHERE $group_by = 'caller'
    UNION ALL
    SELECT
        NULL, coalesce(p.name, '(no backtrace)'), api_name, call_group, duration_ns, api_duration_ns, queue_ns, end_ns,
        api_start_ns, api_end_ns
    FROM launches LEFT JOIN _call_stacks($stack) AS p USING (process_id, correlation_id)
    WHERE $group_by = 'stack'
),
launch_times AS (
    SELECT
        name_id,
        place,
        api_name,
        call_group = 'launch' AS has_own_call,
        duration_ns AS kernel_ns,
        CASE WHEN has_own_call THEN api_duration_ns END AS api_ns,
        CASE WHEN has_own_call AND queue_ns >= 0 THEN queue_ns END AS queue_ns,
        CASE WHEN has_own_call THEN greatest(end_ns, api_end_ns, api_start_ns) - api_start_ns END AS total_ns
    FROM grouped_launches
),
launch_statistics AS (
    SELECT
        name_id,
        place,
        api_name,
        has_own_call,
        count(*) AS calls,
        sum(api_ns)::BIGINT AS api_total_ns,
        quantile_cont(api_ns, 0.5) AS api_med_ns,
        avg(queue_ns) AS queue_avg_ns,
        quantile_cont(queue_ns, 0.5) AS queue_med_ns,
        max(queue_ns) AS queue_max_ns,
        count(queue_ns) AS queued_count,
        sum(kernel_ns)::BIGINT AS kernel_total_ns,
        quantile_cont(kernel_ns, 0.5) AS kernel_med_ns,
        avg(total_ns) AS total_avg_ns
    FROM launch_times
    GROUP BY ALL
)
SELECT
    coalesce(m.place, s.name, '(no name)') AS name,
    m.calls,
    m.api_total_ns,
    m.api_total_ns / m.calls AS api_avg_ns,
    m.api_med_ns,
    m.queue_avg_ns,
    m.queue_med_ns,
    m.queue_max_ns,
    CASE WHEN m.has_own_call THEN m.queued_count END AS queued_count,
    m.kernel_total_ns,
    m.kernel_total_ns / m.calls AS kernel_avg_ns,
    m.kernel_med_ns,
    m.total_avg_ns,
    m.api_total_ns / nullif(m.kernel_total_ns, 0) AS api_kernel_ratio,
    m.api_name
FROM launch_statistics AS m
LEFT JOIN strings AS s USING (name_id)
ORDER BY m.api_total_ns DESC NULLS LAST, m.kernel_total_ns DESC, name, m.api_name
