/*
description = """One row if there are steady steps: the time of a step (or token) without the profiler, measured
    (--step-time) or estimated. The GPU's times stay. Of the host's time remains the share of its usual call that is not
    nsys's (queries/catalog/profiler_costs.toml), without NVTX ranges: the step is shorter by the rest, until the GPU
    bounds it."""
stored = true
[columns]
step_ns = "Time of a typical step (the median) under the profiler"
low_ns = "Time of a step without the profiler, at least; as measured if it was; NULL if there is no estimate"
likely_ns = "Time of a step without the profiler, if a call costs as much as usual; NULL if there is no estimate"
high_ns = "Time of a step without the profiler, at most; NULL if there is no estimate"
source = "measured (--step-time) or estimated; NULL for neither"
reason = """\
Why there is no estimate: other ranks, traced graphs, even (the host takes as long as the GPU), few launches,
    graphs (they launch the step), backtraces, code loading, other work (of the host), long calls, or framework (none
    like it was measured). Why --step-time is not used: too long or too short. NULL for neither"""
call_ns = "Median time of the call that the host makes most often of those that put work on the GPU; NULL without calls"
bound = """What bounds the step without the profiler: host or GPU; NULL if that is unknown. GPU means the GPU's work and
    what it waits for in addition to late launches"""
gpu_ns = "Part of step_ns that the profiler does not change: all but the idle time before late launches"
host_ns = "Time of the host in a step without its waits, under the profiler"
host_low_ns = "Time of the host in a step without its waits and without the profiler, at least; NULL if unknown"
late_ns = "Idle time before late launches per step, under the profiler: launch of `step_budget`"
late_low_ns = "Idle time before late launches without the profiler, at least; NULL if it is unknown"
late_high_ns = "Idle time before late launches without the profiler, at most; NULL if it is unknown"
*/
WITH steady_steps AS (
    SELECT step, process_id, host_start_ns, host_end_ns, duration_ns FROM steps WHERE phase = 'steady'
),
usual_step AS (
    SELECT count(*) AS steps, median(step) AS middle, median(duration_ns) AS step_ns FROM steady_steps
),
-- Calls of up to 32 steps in the middle: the first steps of a capture are slower.
middle_steps AS (
    SELECT
        min(host_start_ns) AS start_ns, max(host_end_ns) AS end_ns, any_value(process_id) AS process_id,
        count(*) AS steps
    FROM (FROM steady_steps ORDER BY abs(step - (SELECT middle FROM usual_step)), step LIMIT 32)
),
-- What the host calls most often of what puts work on the GPU.
usual_calls AS (
    SELECT
        c.call_group, median(c.duration_ns) AS call_ns, count(*) AS calls,
        count(coalesce(c.callchain_id, b.correlation_id)) AS traced_back
    FROM api_calls AS c
    JOIN middle_steps AS m ON m.process_id = c.process_id AND c.start_ns BETWEEN m.start_ns AND m.end_ns
    LEFT JOIN _traced_back_calls AS b ON b.process_id = c.process_id AND b.correlation_id = c.correlation_id
    WHERE c.call_group IN ('launch', 'graph launch', 'copy', 'memset')
    GROUP BY c.call_group
    -- A launch where there are as many copies: how long a copy takes depends on its size.
    ORDER BY calls DESC, c.call_group = 'launch' DESC, c.call_group
    LIMIT 1
),
-- NVTX ranges of a step.
range_counts AS (
    SELECT count(*) / any_value(m.steps) AS ranges
    FROM nvtx_ranges AS n
    JOIN middle_steps AS m ON m.process_id = n.process_id AND n.start_ns BETWEEN m.start_ns AND m.end_ns
),
-- What puts work on the GPU, without graphs, and what loads code.
call_times AS (
    SELECT
        sum(calls) FILTER (call_group <> 'module') AS calls,
        sum(time_ns) FILTER (call_group <> 'module') AS time_ns,
        sum(time_ns) FILTER (call_group = 'module') AS load_ns
    FROM step_calls
    WHERE call_group IN ('launch', 'copy', 'memset', 'module') AND step IN (SELECT step FROM steady_steps)
),
parts AS (
    SELECT
        coalesce(sum(time_ns) FILTER (part = 'launch'), 0) AS late_ns,
        coalesce(sum(time_ns) FILTER (part = 'communication'), 0) AS communication_ns
    FROM step_budget
),
-- Times of a step, not of a token.
step_times AS (
    SELECT
        m.tokens_per_step AS tokens, m.measured_ns, s.wall_ns * m.tokens_per_step AS wall_ns, d.step_ns,
        least(s.host_floor_ns * m.tokens_per_step, d.step_ns) AS host_ns,
        p.late_ns / s.units * m.tokens_per_step AS late_ns,
        p.communication_ns / s.units * m.tokens_per_step AS communication_ns,
        least((s.wall_ns - p.late_ns / s.units) * m.tokens_per_step, d.step_ns) AS gpu_ns,
        s.busy_ns * m.tokens_per_step AS busy_ns,
        u.call_group, u.call_ns, u.traced_back > 0.1 * u.calls AS is_traced_back,
        c.calls / d.steps AS calls, c.time_ns / d.steps AS calls_ns, c.load_ns / d.steps AS load_ns,
        u.call_ns > 3 * k.likely_ns AS has_long_calls,
        -- Ranges cost the program nothing without nsys.
        least(coalesce(r.ranges, 0) * k.range_share * u.call_ns, 0.5 * host_ns) AS ranges_ns,
        least(k.least_ns / u.call_ns, k.least_share) AS least_share,
        least(k.likely_ns / u.call_ns, k.likely_share) AS likely_share,
        least(greatest(k.most_ns / u.call_ns, k.most_share), 1) AS most_share
    FROM _step_totals AS s
    CROSS JOIN step_method AS m
    CROSS JOIN usual_step AS d
    CROSS JOIN parts AS p
    CROSS JOIN call_times AS c
    CROSS JOIN range_counts AS r
    LEFT JOIN usual_calls AS u ON true
    LEFT JOIN (SELECT framework FROM frameworks WHERE is_program) AS f ON true
    LEFT JOIN profiler_costs() AS k ON k.framework = f.framework AND k.call_group = u.call_group
    WHERE s.has_steps AND d.step_ns > 0
),
judged_steps AS (
    SELECT
        *,
        -- The time of another unit of work than the step of the trace is not used.
        CASE
            WHEN measured_ns > 1.15 * greatest(step_ns, wall_ns) THEN 'too long'
            WHEN measured_ns < 0.8 * busy_ns THEN 'too short'
        END AS misfit,
        late_ns < 0.02 * wall_ns OR gpu_ns >= 0.97 * step_ns AS is_gpu_bound,
        CASE
            WHEN communication_ns >= 0.05 * wall_ns THEN 'other ranks'
            WHEN is_gpu_bound AND EXISTS (FROM _traced_graphs) THEN 'traced graphs'
            -- Streams overlap more if the host launches earlier.
            WHEN is_gpu_bound AND host_ns >= 0.9 * step_ns THEN 'even'
            WHEN is_gpu_bound THEN NULL
            WHEN call_group IS NULL OR calls < 0.9 THEN 'few launches'
            WHEN call_group = 'graph launch' THEN 'graphs'
            WHEN is_traced_back THEN 'backtraces'
            WHEN load_ns >= 0.5 * host_ns THEN 'code loading'
            -- The share of programs that read files, compile or compute on the host was up to 0.17.
            WHEN calls_ns < 0.18 * host_ns THEN 'other work'
            WHEN has_long_calls THEN 'long calls'
            WHEN least_share IS NULL THEN 'framework'
        END AS objection
    FROM step_times
),
bounds AS (
    SELECT
        *,
        CASE
            WHEN measured_ns IS NOT NULL AND misfit IS NULL THEN 'measured'
            WHEN objection IS NULL THEN 'estimated'
        END AS source,
        CASE
            WHEN source = 'measured' THEN measured_ns
            WHEN is_gpu_bound AND source = 'estimated' THEN gpu_ns
            WHEN source = 'estimated' THEN greatest(gpu_ns, step_ns - host_ns + least_share * (host_ns - ranges_ns))
        END AS low_ns,
        CASE
            WHEN source = 'measured' THEN measured_ns
            WHEN is_gpu_bound AND source = 'estimated' THEN step_ns
            WHEN source = 'estimated' THEN greatest(gpu_ns, step_ns - host_ns + likely_share * (host_ns - ranges_ns))
        END AS likely_ns,
        CASE
            WHEN source = 'measured' THEN measured_ns
            WHEN is_gpu_bound AND source = 'estimated' THEN step_ns
            WHEN source = 'estimated' THEN greatest(gpu_ns, step_ns - (1 - most_share) * host_ns)
        END AS high_ns
    FROM judged_steps
)
SELECT
    step_ns / tokens AS step_ns,
    low_ns / tokens AS low_ns,
    likely_ns / tokens AS likely_ns,
    high_ns / tokens AS high_ns,
    source,
    CASE WHEN misfit IS NOT NULL THEN misfit WHEN source IS NULL THEN objection END AS reason,
    call_ns,
    CASE WHEN high_ns <= 1.05 * gpu_ns THEN 'GPU' WHEN low_ns > 1.05 * gpu_ns THEN 'host' END AS bound,
    gpu_ns / tokens AS gpu_ns,
    host_ns / tokens AS host_ns,
    CASE WHEN objection IS NULL OR is_gpu_bound THEN least_share * host_ns / tokens END AS host_low_ns,
    late_ns / tokens AS late_ns,
    -- greatest and least leave out NULL.
    CASE WHEN source IS NOT NULL THEN least(greatest(low_ns - gpu_ns, 0), late_ns) / tokens END AS late_low_ns,
    CASE WHEN source IS NOT NULL THEN least(greatest(high_ns - gpu_ns, 0), late_ns) / tokens END AS late_high_ns
FROM bounds;
