/*
title = "What the host does that keeps the GPU waiting"
topic = "idle"
place = 2
question = "What does the host do that keeps the GPU waiting, and what may removing it win?"
main = ["bottleneck", "recoverable_ns", "wall_pct", "count", "host_ns", "see"]
details = ["code"]
description = """
Ranks what the host does in a steady step (see steps; in the whole scope where none are found) by what removing it may win
back. recoverable_ns is idle time of the GPU, as classify splits it: of D2H sync points and other waits also what starved
after them, at most as long as they held the host up; CPU work is time of a late launching thread outside of CUDA calls;
launch calls is that in the calls, and on the way from them to the GPU. Pageable copies and blocking memsets are the idle
time during their calls, so they may repeat what waits, blocking copies, launch calls or other API calls have. count and
host_ns are of the calls that began in the step, by whichever thread, without calls inside others."""
reading = """
From the top, one at a time. D2H sync points: keep the value on the GPU, or read it back later (see syncs). Allocations: a
pool (see mallocs). CPU work (see cpu-work, gaps): do it later, on another thread, or take it out of the step with a CUDA graph. Launch calls: a
CUDA graph or fusion (see graph-candidates). Pageable copies: pin the memory (see copies). Blocking memsets:
cudaMemsetAsync. What takes host_ns but has nothing recoverable is hidden behind the GPU's work: leave it."""
empty = "No CUDA calls are recorded in this scope; if the program did use the GPU, capture with: nsys profile -t cuda"

[columns]
bottleneck = "What the host does"
count = "How often per token; in the whole scope where no steps were found; NULL for CPU work"
host_ns = "Time of the host per token; of CPU work, that outside of CUDA calls in the step, NULL where several threads call"
recoverable_ns = "GPU idle time per token that it causes: what can be won back, at most"
wall_pct = "Share of the wall that this is"
see = "The report that says more"
code = "What the host does in one word that stays the same: d2h_sync, other_wait, blocking_copy, pageable_copy, allocation, launch_call, other_call, blocking_memset, cpu_work"

[notes]
whole = """
SELECT 'no steady steps were found: counts and times are of the whole scope, with its start-up; name an NVTX range with --step-range'
FROM answer WHERE NOT EXISTS (FROM steps WHERE phase = 'steady') HAVING count(*) > 0"""
api_calls = """
SELECT round(sum(calls)::DOUBLE / any_value(p.tokens), 1) || ' CUDA API calls' || CASE WHEN EXISTS (FROM steps WHERE phase = 'steady') THEN ' per token' ELSE '' END
    || ', as far as nsys records them; they take the host ' || round(sum(time_ns) / any_value(p.tokens) / 1e6, 3) || ' ms'
FROM (
    SELECT calls, time_ns FROM step_calls WHERE step IS NULL OR step IN (SELECT step FROM steps WHERE phase = 'steady')
)
CROSS JOIN (SELECT coalesce((SELECT steady_count * tokens_per_step FROM step_method WHERE steady_count > 0), 1) AS tokens) AS p
WHERE EXISTS (FROM answer)
HAVING count(*) > 0"""
processes = """
SELECT sentence FROM _other_processes WHERE EXISTS (FROM answer)"""
[agent]
rows = 5
columns = ["bottleneck", "count", "host_ns", "recoverable_ns", "wall_pct", "see"]
*/
WITH steady AS (
    FROM steps WHERE phase = 'steady'
),
budget AS MATERIALIZED (
    FROM step_budget
),
-- What a sum over the steps, and one over the steps and GPUs, is divided by.
per AS (
    SELECT
        greatest((SELECT count(*) FROM steady), 1) * t.tokens AS tokens,
        greatest((SELECT count(DISTINCT (step, gpu_id)) FROM budget), 1) * t.tokens AS gpu_tokens,
        (SELECT sum(time_ns) FROM budget)::DOUBLE AS all_ns
    FROM (SELECT coalesce((SELECT tokens_per_step FROM step_method WHERE EXISTS (FROM steady)), 1) AS tokens) AS t
),
pageable AS (
    SELECT DISTINCT process_id, correlation_id FROM memcpys WHERE 'pageable' IN (source_memory, target_memory)
),
-- Of the steady steps, or of all calls where there are none.
calls AS MATERIALIZED (
    FROM step_calls WHERE step IS NULL OR step IN (SELECT step FROM steady)
),
by_call AS (
    SELECT
        CASE
            WHEN call_group IN ('launch', 'graph launch') THEN 'launch_call'
            WHEN call_group IN ('alloc', 'free') THEN 'allocation'
            WHEN call_group NOT IN ('sync', 'copy') THEN 'other_call'
        END AS code,
        sum(calls)::BIGINT AS calls, sum(time_ns)::BIGINT AS host_ns
    FROM calls
    WHERE code IS NOT NULL
    GROUP BY ALL
),
by_wait AS (
    SELECT
        CASE WHEN w.copy_kind = 'D2H' THEN 'd2h_sync' WHEN w.is_copy THEN 'blocking_copy' ELSE 'other_wait' END AS code,
        count(*) AS calls, sum(w.wait_ns)::BIGINT AS host_ns
    FROM waits AS w
    ASOF LEFT JOIN steady AS s ON s.process_id = w.process_id AND s.host_start_ns <= w.start_ns
    WHERE w.start_ns < s.host_end_ns OR NOT EXISTS (FROM steady)
    GROUP BY ALL
),
-- Of these few calls, the time of each during which the GPU was idle. What may overlap is compared slot by slot.
named AS MATERIALIZED (
    SELECT c.code, c.process_id, c.start_ns, c.end_ns, c.duration_ns
    FROM (
        SELECT 'pageable_copy' AS code, process_id, start_ns, end_ns, duration_ns
        FROM outer_api_calls SEMI JOIN pageable USING (process_id, correlation_id)
        WHERE call_group = 'copy'
        UNION ALL
        SELECT 'blocking_memset', process_id, start_ns, end_ns, duration_ns
        FROM outer_api_calls
        WHERE call_group = 'memset' AND name NOT LIKE '%Async%'
    ) AS c
    ASOF LEFT JOIN steady AS s ON s.process_id = c.process_id AND s.host_start_ns <= c.start_ns
    WHERE c.start_ns < s.host_end_ns OR NOT EXISTS (FROM steady)
),
line AS MATERIALIZED (
    SELECT
        greatest(16384, (max(end_ns) - min(start_ns)) // 200000) AS slot_ns, min(start_ns) AS from_ns, max(end_ns) AS until_ns
    FROM named HAVING count(*) > 0
),
gaps AS NOT MATERIALIZED (
    SELECT
        start_ns, end_ns, greatest(start_ns, from_ns) // slot_ns AS first_slot, least(end_ns, until_ns) // slot_ns AS last_slot
    FROM gpu_gaps CROSS JOIN line
    WHERE gpu_id IN (SELECT gpu_id FROM budget) AND start_ns < until_ns AND end_ns > from_ns
),
idle_during AS (
    SELECT n.code, sum(least(g.end_ns, n.end_ns) - greatest(g.start_ns, n.start_ns))::BIGINT AS idle_ns
    FROM (
        SELECT *, first_slot AS slot FROM gaps WHERE last_slot = first_slot
        UNION ALL
        SELECT *, unnest(range(first_slot, last_slot + 1)) FROM gaps WHERE last_slot > first_slot
    ) AS g
    JOIN (
        SELECT code, start_ns, end_ns, start_ns // slot_ns AS first_slot, unnest(range(start_ns // slot_ns, end_ns // slot_ns + 1)) AS slot
        FROM named CROSS JOIN line
    ) AS n USING (slot)
    WHERE slot = greatest(g.first_slot, n.first_slot) AND g.start_ns < n.end_ns AND g.end_ns > n.start_ns
    GROUP BY n.code
),
by_name AS (
    SELECT code, count(*) AS calls, sum(duration_ns)::BIGINT AS host_ns FROM named GROUP BY ALL
),
cpu_work AS (
    SELECT 'cpu_work' AS code, NULL::BIGINT AS calls,
        CASE WHEN (SELECT count(DISTINCT (process_id, thread_id)) FROM calls) = 1 THEN
            (SELECT sum(host_end_ns - host_start_ns)::BIGINT FROM steady) - (SELECT sum(time_ns)::BIGINT FROM calls)
        END AS host_ns
),
counted AS (
    FROM by_call UNION ALL FROM by_wait UNION ALL FROM by_name UNION ALL FROM cpu_work
),
idle AS (
    SELECT
        CASE
            WHEN part = 'sync' AND host = 'D2H copy' THEN 'd2h_sync'
            WHEN part = 'sync' THEN 'other_wait'
            WHEN part = 'copy' AND host IS NOT NULL THEN 'blocking_copy'
            WHEN part = 'allocation' THEN 'allocation'
            WHEN part = 'launch' AND host IN ('CPU work', 'managed memory') THEN 'cpu_work'
            WHEN part = 'launch' AND host = 'API calls' THEN 'other_call'
            WHEN part = 'launch' THEN 'launch_call'
        END AS code,
        sum(time_ns)::BIGINT AS idle_ns
    FROM budget
    WHERE code IS NOT NULL
    GROUP BY ALL
    UNION ALL
    FROM idle_during
)
SELECT
    w.bottleneck,
    c.calls / p.tokens AS count,
    c.host_ns / p.tokens AS host_ns,
    coalesce(i.idle_ns, 0) / p.gpu_tokens AS recoverable_ns,
    100 * coalesce(i.idle_ns, 0) / p.all_ns AS wall_pct,
    CASE WHEN code = 'cpu_work' AND EXISTS (FROM _cpu_work WHERE is_told) THEN 'cpu-work' ELSE w.see END AS see,
    code
FROM counted AS c
FULL JOIN idle AS i USING (code)
LEFT JOIN (VALUES
    ('d2h_sync', 'D2H sync points', 'syncs'),
    ('other_wait', 'other waits', 'syncs'),
    ('blocking_copy', 'blocking copies to the GPU', 'copies'),
    ('pageable_copy', 'pageable copies', 'copies'),
    ('allocation', 'allocations and frees', 'mallocs'),
    ('launch_call', 'launch calls', 'graph-candidates'),
    ('other_call', 'other API calls', 'api'),
    ('blocking_memset', 'blocking memsets', 'api'),
    ('cpu_work', 'CPU work', 'gaps')
) AS w(code, bottleneck, see) USING (code)
CROSS JOIN per AS p
WHERE c.calls > 0 OR i.idle_ns > 0
ORDER BY recoverable_ns DESC, c.host_ns DESC NULLS LAST, bottleneck
