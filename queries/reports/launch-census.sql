/*
title = "Where the launches of a step come from"
topic = "steps"
place = 8
question = "How many launch calls does a step make for each kernel family, kernel, or caller?"
examples = ["--group-by caller", "--step 5"]
main = ["launch_pct", "launch_calls", "host_ns", "name", "gpu_ns", "kernels", "gpu_pct"]
details = ["kernels", "gpu_pct"]
description = """
Counts the launch calls that begin in a steady step (see steps; in the whole scope where no steps were found), per
token, with what they cost the host and what they run on the GPU. Calls are grouped by family, by kernel, or by
caller: the innermost Python function in the call's backtrace, else the operator, else the program's own function;
or by the caller with the functions around it. A CUDA graph launch is one call, however many kernels it runs. Calls
inside other calls are not counted. host_ns is the duration of the calls, gpu_ns that of their kernels, which may
overlap."""
reading = """
Rows with many launches and little gpu_ns are worth fusing (see fusion) or capturing in a CUDA graph (see
graph-candidates): each launch costs the host about the same, however little it runs. By caller, the functions at
the top are where to do it."""
empty = "No launch calls are recorded in the steady steps"
advice = "if the program did use the GPU, capture with: nsys profile -t cuda"

[params.group_by]
default = "family"
choices = ["family", "kernel", "caller", "stack"]
help = "What one row stands for: the family of the kernel, the kernel"

[shares]
launch_pct = "launch calls"
gpu_pct = "GPU time"

[columns]
name = "What the launches were grouped by; CUDA graph for graph launches"
launch_calls = "Launch calls per token"
launch_pct = "Share of all launch calls"
host_ns = "Time of the calls on the host per token"
gpu_ns = "Time of their kernels on the GPU per token; NULL where the trace does not have them"
kernels = "Kernels per token"
gpu_pct = "gpu_ns as a share of the gpu_ns of all rows"

[notes]
whole.use = "no_steady_steps"
processes.use = "processes"
*/
WITH token_count AS (
    SELECT count(*) * any_value(tokens) AS tokens FROM _steady_windows
),
-- The start of each launch call: a call belongs to the step in which it begins.
call_starts AS (
    SELECT
        process_id, correlation_id, call_of(correlation_id, process_id) AS call, duration_ns, call_group, start_ns,
        start_ns AS end_ns
    FROM outer_api_calls
    WHERE call_group IN ('launch', 'graph launch')
),
windows AS (
    SELECT process_id, host_start_ns AS start_ns, host_end_ns AS end_ns FROM _steady_windows
),
calls AS (
    SELECT process_id, correlation_id, call, duration_ns, call_group
    FROM whole_in('call_starts', 'windows')
    WHERE process_id = coalesce((SELECT any_value(process_id) FROM windows), process_id)
),
kernels_by_call AS (
    SELECT
        call_of(correlation_id, process_id) AS call, count(*) AS kernels, sum(duration_ns)::BIGINT AS gpu_ns,
        min(name_id) AS name_id
    FROM kernel_events
    GROUP BY ALL
),
calls_with_kernels AS (
    SELECT
        c.*, r.kernels, r.gpu_ns, r.name_id,
        CASE
            WHEN c.call_group = 'graph launch' THEN 'CUDA graph' WHEN r.kernels IS NULL THEN '(no kernel in the trace)'
        END AS special
    FROM calls AS c
    LEFT JOIN kernels_by_call AS r USING (call)
),
grouped_calls AS (
    SELECT coalesce(l.special, n.family, 'other') AS name, l.kernels, l.gpu_ns, l.duration_ns
    FROM calls_with_kernels AS l LEFT JOIN kernel_names AS n USING (name_id)
    WHERE $group_by = 'family'
    UNION ALL
    SELECT coalesce(l.special, n.name, '(no name)'), l.kernels, l.gpu_ns, l.duration_ns
    FROM calls_with_kernels AS l LEFT JOIN kernel_names AS n USING (name_id)
    WHERE $group_by = 'kernel'
    UNION ALL
    SELECT coalesce(p.name, '(no backtrace)'), l.kernels, l.gpu_ns, l.duration_ns
    FROM calls_with_kernels AS l LEFT JOIN call_places AS p USING (process_id, correlation_id)
    WHERE $group_by = 'caller'
    UNION ALL
    SELECT coalesce(p.name, '(no backtrace)'), l.kernels, l.gpu_ns, l.duration_ns
    FROM calls_with_kernels AS l LEFT JOIN _call_stacks($stack) AS p USING (process_id, correlation_id)
    WHERE $group_by = 'stack'
),
group_totals AS MATERIALIZED (
    SELECT
        name, count(*) AS calls, sum(duration_ns)::BIGINT AS host_ns, sum(gpu_ns)::BIGINT AS gpu_ns,
        sum(kernels)::BIGINT AS kernels
    FROM grouped_calls
    GROUP BY name
)
SELECT
    s.name,
    s.calls / p.tokens AS launch_calls,
    100.0 * s.calls / (SELECT sum(calls) FROM group_totals) AS launch_pct,
    s.host_ns / p.tokens AS host_ns,
    s.gpu_ns / p.tokens AS gpu_ns,
    s.kernels / p.tokens AS kernels,
    100.0 * s.gpu_ns / nullif((SELECT sum(gpu_ns) FROM group_totals), 0)::BIGINT AS gpu_pct
FROM group_totals AS s, token_count AS p
ORDER BY launch_calls DESC, host_ns DESC, s.name
