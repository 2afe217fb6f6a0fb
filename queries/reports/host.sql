/*
title = "Host work that keeps the GPU idle"
topic = "idle"
place = 2
question = "What does the host do that keeps the GPU waiting, and how much time can removing it save?"
examples = ["", "--steady --limit 10"]
main = ["wall_pct", "recoverable_ns", "count", "bottleneck", "caller", "host_ns", "see"]
details = ["code", "caller"]
description = """
Ranks what the host does in a steady step (see steps; in the whole scope where no steps were found) by what removing
it can save. recoverable_ns is idle time of the GPU, as classify splits it: for D2H sync points and other waits it
includes the time of late launches after them, up to the time that they blocked the host; for CPU work it is the time
that a late launching thread spent outside of CUDA and MPI calls; for launch calls the time in the calls, and from
them to the start on the GPU. Pageable copies and blocking memsets have the idle time during their calls, so they may
repeat idle time of waits, blocking copies, launch calls or other API calls. count and host_ns cover the calls of any
thread that began in the step, without calls inside others. By caller, waits, copies, memsets and allocations are
their caller's; CPU work, launch calls and other API calls are what was late before an operation that the caller
launched: what its code, or code before it, kept the GPU waiting for. Rows of one bottleneck add up to that of the
report without callers."""
reading = """
From the top, one at a time. D2H sync points: keep the value on the GPU, or read it back later (see syncs).
Allocations: a pool (see mallocs). CPU work (see cpu-work, gaps): move it off the launching thread, or take it out of
the step with a CUDA graph. Launch calls: a CUDA graph or fusion (see graph-candidates). Pageable copies: pin the
memory (see copies). Blocking memsets: cudaMemsetAsync. MPI calls: let messages pass while the GPU works (see mpi).
Rows with host_ns but nothing recoverable are hidden behind the GPU's work: leave them."""
empty = "No CUDA calls are recorded in this scope"
advice = "if the program did use the GPU, capture with: nsys profile -t cuda"

[params.group_by]
default = "bottleneck"
choices = ["bottleneck", "caller", "stack"]
help = "What one row stands for: what the host does, or what it does for each caller"

[columns]
bottleneck = "What the host does"
count = """\
Number per step (or token); in total for the whole scope where no steps were found; NULL for CPU work and MPI calls"""
host_ns = """\
Host time per step (or token); for CPU work, the time outside of CUDA calls in the step, NULL where several threads \
make calls, and by caller"""
recoverable_ns = "GPU idle time per step (or token) that it causes: the most that can be saved"
wall_pct = "recoverable_ns as a share of the wall time"
see = "The report with the details"
code = """\
Stable identifier of the bottleneck: d2h_sync, other_wait, blocking_copy, pageable_copy, allocation, launch_call, \
other_call, blocking_memset, mpi_call, cpu_work"""
caller = "What --group-by selects, for CPU work that of the launch which it delayed; NULL without it"

[shares]
wall_pct = "the wall time of the steady steps, or of the scope where no steps were found"

[notes]
longer.text = """
recoverable is idle time of the GPU, which lasts until the next operation starts: it can be longer than the host's
time"""
longer.query = "SELECT code FROM answer WHERE recoverable_ns > host_ns LIMIT 1"

whole.use = "no_steady_steps"

api_calls.text = "{calls} recorded CUDA API calls< per {unit}> ({time_ns} CPU time)"
api_calls.query = """
SELECT
    round(sum(calls)::DOUBLE / any_value(p.tokens), 1) AS calls, sum(time_ns) / any_value(p.tokens) AS time_ns,
    (SELECT unit FROM _step_source WHERE EXISTS (FROM steps WHERE phase = 'steady')) AS unit
FROM (
    SELECT calls, time_ns FROM step_calls WHERE step IS NULL OR step IN (SELECT step FROM _steady_windows)
)
CROSS JOIN (
    SELECT coalesce((SELECT steady_count * tokens_per_step FROM step_method WHERE steady_count > 0), 1) AS tokens
) AS p
WHERE EXISTS (FROM answer)
HAVING count(*) > 0"""

processes.use = "processes"

[ranks]
by = ["bottleneck", "see", "code"]
spread = "recoverable_ns"
mean = ["count", "host_ns", "recoverable_ns", "wall_pct"]
*/
WITH places_by_call AS (
    SELECT NULL::BIGINT AS process_id, NULL::BIGINT AS correlation_id, NULL::VARCHAR AS place WHERE false
    UNION ALL
    SELECT process_id, correlation_id, name FROM call_places WHERE $group_by = 'caller'
    UNION ALL
    SELECT process_id, correlation_id, name FROM _call_stacks($stack) WHERE $group_by = 'stack'
),
-- The divisors of sums over the steps, and of sums over the steps and GPUs.
divisors AS (
    SELECT s.steps * s.tokens AS tokens, greatest(b.gpu_steps, 1) * s.tokens AS gpu_tokens, b.all_ns
    FROM (SELECT count(*) AS steps, any_value(tokens) AS tokens FROM _steady_windows) AS s
    CROSS JOIN (
        SELECT count(DISTINCT (step, gpu_id)) AS gpu_steps, sum(time_ns)::DOUBLE AS all_ns FROM step_budget
    ) AS b
),
-- The calls of the steady steps; all calls if there are no steps.
calls AS MATERIALIZED (
    FROM step_calls WHERE step IS NULL OR step IN (SELECT step FROM _steady_windows)
),
call_costs AS (
    SELECT
        CASE
            WHEN call_group IN ('launch', 'graph launch') THEN 'launch_call'
            WHEN call_group IN ('alloc', 'free') THEN 'allocation'
            WHEN call_group NOT IN ('sync', 'copy') THEN 'other_call'
        END AS code,
        place, sum(calls)::BIGINT AS calls, sum(time_ns)::BIGINT AS host_ns
    FROM (
        SELECT call_group, NULL AS place, calls, time_ns FROM calls WHERE $group_by = 'bottleneck'
        UNION ALL
        SELECT a.call_group, p.place, 1, a.duration_ns
        FROM outer_api_calls AS a
        ASOF JOIN _steady_windows AS s ON s.host_start_ns <= a.start_ns
        LEFT JOIN places_by_call AS p ON p.process_id = a.process_id AND p.correlation_id = a.correlation_id
        WHERE a.start_ns < s.host_end_ns AND a.process_id = coalesce(s.process_id, a.process_id)
            AND $group_by IN ('caller', 'stack')
    )
    WHERE code IS NOT NULL
    GROUP BY ALL
),
wait_costs AS (
    SELECT
        CASE WHEN w.copy_kind = 'D2H' THEN 'd2h_sync' WHEN w.is_copy THEN 'blocking_copy' ELSE 'other_wait' END AS code,
        p.place, count(*) AS calls, sum(w.wait_ns)::BIGINT AS host_ns
    FROM waits AS w
    LEFT JOIN places_by_call AS p ON p.process_id = w.process_id AND p.correlation_id = w.correlation_id
    ASOF JOIN _steady_windows AS s ON s.host_start_ns <= w.start_ns
    WHERE w.start_ns < s.host_end_ns AND w.process_id = coalesce(s.process_id, w.process_id)
    GROUP BY ALL
),
-- Calls that are identified by their name, and during which the GPU may have been idle.
blocking_calls AS MATERIALIZED (
    SELECT c.code, p.place, c.process_id, c.start_ns, c.end_ns, c.duration_ns
    FROM (
        SELECT *, CASE call_group WHEN 'copy' THEN 'pageable_copy' ELSE 'blocking_memset' END AS code
        FROM outer_api_calls
        WHERE call_group IN ('copy', 'memset') AND CASE call_group WHEN 'memset' THEN name NOT LIKE '%Async%'
            ELSE (process_id, correlation_id) IN (
                SELECT (process_id, correlation_id) FROM memcpys WHERE 'pageable' IN (source_memory, target_memory)
            ) END
    ) AS c
    LEFT JOIN places_by_call AS p USING (process_id, correlation_id)
    ASOF JOIN _steady_windows AS s ON s.host_start_ns <= c.start_ns
    WHERE c.start_ns < s.host_end_ns AND c.process_id = coalesce(s.process_id, c.process_id)
),
blocking_call_costs AS (
    SELECT code, place, count(*) AS calls, sum(duration_ns)::BIGINT AS host_ns FROM blocking_calls GROUP BY ALL
),
cpu_work AS (
    SELECT 'cpu_work' AS code, NULL AS place, NULL::BIGINT AS calls,
        CASE WHEN count(DISTINCT (process_id, thread_id)) = 1 THEN
            (SELECT sum(host_end_ns - host_start_ns)::BIGINT FROM _steady_windows WHERE step IS NOT NULL)
                - sum(time_ns)::BIGINT
        END AS host_ns
    FROM calls
),
host_costs AS (
    FROM call_costs UNION ALL FROM wait_costs UNION ALL FROM blocking_call_costs
    UNION ALL
    SELECT * FROM cpu_work WHERE $group_by = 'bottleneck'
),
idle AS (
    SELECT _bottleneck_code(part, host) AS code, NULL AS place, sum(time_ns)::BIGINT AS idle_ns
    FROM step_budget
    WHERE $group_by = 'bottleneck' AND code IS NOT NULL
    GROUP BY ALL
    UNION ALL
    SELECT * FROM _idle_by_caller('places_by_call') WHERE $group_by IN ('caller', 'stack')
    UNION ALL
    FROM _idle_during('blocking_calls')
)
SELECT
    w.bottleneck,
    c.calls / p.tokens AS count,
    c.host_ns / p.tokens AS host_ns,
    coalesce(i.idle_ns, 0) / p.gpu_tokens AS recoverable_ns,
    100 * coalesce(i.idle_ns, 0) / p.all_ns AS wall_pct,
    CASE WHEN w.code = 'cpu_work' AND EXISTS (FROM _cpu_work WHERE is_known) THEN 'cpu-work' ELSE w.see END AS see,
    w.code,
    -- Whose CPU work it was is unknown; only the launch that it delayed is known.
    CASE WHEN $group_by <> 'bottleneck' THEN coalesce(
        CASE
            WHEN w.code <> 'cpu_work' THEN ''
            WHEN coalesce(c.place, i.place) SIMILAR TO '(in|after|before) .*' THEN 'before the launch '
            ELSE 'before the launch by '
        END || coalesce(c.place, i.place), '(no backtrace)')
    END AS caller
FROM host_costs AS c
FULL JOIN idle AS i ON i.code = c.code AND i.place IS NOT DISTINCT FROM c.place
LEFT JOIN (VALUES
    ('d2h_sync', 'D2H sync points', 'syncs'),
    ('other_wait', 'other waits', 'syncs'),
    ('blocking_copy', 'blocking copies to the GPU', 'copies'),
    ('pageable_copy', 'pageable copies', 'copies'),
    ('allocation', 'allocations and frees', 'mallocs'),
    ('launch_call', 'launch calls', 'graph-candidates'),
    ('other_call', 'other API calls', 'api'),
    ('blocking_memset', 'blocking memsets', 'api'),
    ('mpi_call', 'MPI calls', 'mpi'),
    ('cpu_work', 'CPU work', 'gaps')
) AS w(code, bottleneck, see) ON w.code = coalesce(c.code, i.code)
CROSS JOIN divisors AS p
WHERE c.calls > 0 OR i.idle_ns > 0
ORDER BY recoverable_ns DESC, c.host_ns DESC NULLS LAST, bottleneck, caller
