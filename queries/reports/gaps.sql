/*
title = "The longest times in which the GPU was idle"
topic = "idle"
place = 3
question = "When is the GPU idle, and what was the host doing?"
aliases = ["gpu_gaps"]
details = ["idle_pct", "host_ns", "gpu_id", "process_id", "thread_id", "end_ns"]
description = """
A gap is the time on one GPU from the end of all operations so far (kernels, copies, memsets, whole graphs, on any stream
and of any process) to the start of the next. The gaps and the busy time add up to the time from the first operation to
the last; what of the wall is before and after is no gap. A scope cuts gaps to its own time; what the GPU did for others
in that time is no gap. Without --min-gap the 1,000 longest gaps are listed. host is what took most of the gap on the
thread that launched the operation after it, up to the end of that launch call: an API call by its name (the sum of its
calls), a call of the operating system (captured with -t osrt), or CPU work outside all of these. It is 'launch latency'
if most of the gap came after the launch call had returned; 'launched before the gap' if the call had returned before the
gap began: then the host was not late, the operation waited on the GPU (for another stream, or for the next node of its
graph); 'launch call under way' if the call had begun before the gap and not returned; 'managed memory' if pages of unified memory were moved next, which no call asks for: the host touched them; and 'profiler: …' if the profiler
itself held the thread up for half of the gap."""
reading = """
CPU work: the program does something else before it launches (sampling, tokenising, Python): do it later, on another
thread, or with a CUDA graph. sync: the host waited and launched nothing meanwhile, see syncs. alloc or free: use a memory
pool, see mallocs. launch: launch-bound, see gap-sizes and top. launched before the gap: a dependency between streams or
graph nodes. module: loading code at first use, so warm up before measuring. profiler: not the program's doing."""
empty = "No gaps: fewer than two GPU operations in this scope, or none as long as --min-gap"

[params.min_gap_ns]
type = "integer"
help = "List all gaps at least this long, such as 5us; by default the 1,000 longest"

[columns]
start_ns = "When the GPU became idle"
duration_ns = "How long it was idle"
wall_pct = "Share of the wall"
idle_pct = "Share of the idle time of all gaps in scope"
cause = "What most of the gap is owed to, in the words of idle: starved, blocked, allocation, dependency, profiler, unknown"
host = "What the host did for most of the gap; NULL when the trace does not have the launch call"
host_ns = "How much of the gap that was"
before_name = "The operation before the gap"
after_name = "The operation after the gap"
nvtx_path = "The NVTX range of that thread when the gap began, or at the launch call if that was before; NULL outside all"
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"
process_id = "Process that launched the operation"
thread_id = "Thread that launched it"
end_ns = "When the next operation started"

[notes]
listed = """
SELECT CASE WHEN $min_gap_ns IS NULL THEN 'the 1,000 longest gaps are listed; ' ELSE '' END
    || 'gaps shorter than ' || round(min(duration_ns) / 1e3, 3) || ' µs hold another '
    || round(max(duration_ns * 100 / idle_pct) / 1e6 - sum(duration_ns) / 1e6, 3) || ' ms of idle time ('
    || round(100 - sum(idle_pct), 1) || ' %): list more with --min-gap, or count them all with gap-sizes'
FROM answer WHERE idle_pct > 0 HAVING sum(idle_pct) < 99.95"""
*/
WITH listed AS (
    FROM longest_gaps WHERE duration_ns >= coalesce($min_gap_ns, 0)
),
-- The operations on either side: at one instant, the one of the earlier call.
before_gap AS (
    SELECT g.gap_id, o.name, o.process_id, o.correlation_id
    FROM listed AS g
    JOIN _gap_operations AS o ON o.gpu_id = g.gpu_id AND o.end_ns = g.running_end_ns
    QUALIFY row_number() OVER (PARTITION BY g.gap_id ORDER BY o.correlation_id, o.process_id, o.start_ns DESC, o.name) = 1
),
after_gap AS (
    SELECT g.gap_id, o.name, o.process_id, o.correlation_id
    FROM listed AS g
    JOIN _gap_operations AS o ON o.gpu_id = g.gpu_id AND o.start_ns = g.next_ns
    QUALIFY row_number() OVER (PARTITION BY g.gap_id ORDER BY o.correlation_id, o.process_id, o.end_ns, o.name) = 1
),
-- What may overlap is compared slice by slice: of a millisecond, or longer where the gaps are far apart.
slicing AS MATERIALIZED (
    SELECT min(start_ns) AS first_ns, max(end_ns) AS last_ns, greatest(1000000, (last_ns - first_ns) // 100000) AS slice_ns
    FROM listed
),
launched AS MATERIALIZED (
    SELECT
        g.gap_id, g.gpu_id, g.start_ns, g.end_ns, g.duration_ns, g.idle_ns, b.name AS before_name, a.name AS after_name,
        c.process_id, c.thread_id, c.start_ns AS call_start_ns,
        least(c.end_ns, g.end_ns) AS until_ns,
        CASE
            WHEN a.name LIKE 'UM % copy' AND c.start_ns IS NULL THEN 'managed memory'
            WHEN c.end_ns <= g.running_end_ns OR (a.process_id, a.correlation_id) = (b.process_id, b.correlation_id)
                THEN 'launched before the gap'
            WHEN c.start_ns < g.running_end_ns THEN 'launch call under way'
        END AS in_time
    FROM listed AS g
    LEFT JOIN before_gap AS b USING (gap_id)
    LEFT JOIN after_gap AS a USING (gap_id)
    LEFT JOIN (
        SELECT process_id, correlation_id, min(thread_id) AS thread_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns
        FROM _gap_activity WHERE kind = 'api' GROUP BY ALL
    ) AS c ON c.process_id = a.process_id AND c.correlation_id = a.correlation_id
),
late AS MATERIALIZED (
    FROM launched WHERE in_time IS NULL AND thread_id IS NOT NULL
),
named AS (
    SELECT
        a.process_id, a.thread_id, a.start_ns, a.end_ns,
        CASE a.kind
            WHEN 'api' THEN n.call_group || ': ' || n.name
            WHEN 'os' THEN 'OS: ' || n.name
            ELSE 'profiler: ' || n.name
        END AS host,
        CASE
            WHEN host IS NULL THEN NULL
            WHEN a.kind = 'profiler' THEN 'profiler'
            WHEN a.kind = 'api' AND (n.call_group = 'sync' OR b.correlation_id IS NOT NULL) THEN 'blocked'
            WHEN a.kind = 'api' AND n.call_group IN ('alloc', 'free') THEN 'allocation'
            ELSE 'starved'
        END AS cause,
        CASE a.kind WHEN 'profiler' THEN 0 WHEN 'api' THEN 1 ELSE 2 END AS turn
    FROM _gap_activity AS a
    LEFT JOIN _api_names AS n USING (name_id)
    LEFT JOIN _blocking_copies AS b ON b.process_id = a.process_id AND b.correlation_id = a.correlation_id
),
during AS MATERIALIZED (
    SELECT
        g.gap_id, a.host, a.cause, a.turn, least(a.end_ns, g.until_ns) - greatest(a.start_ns, g.start_ns) AS overlap_ns,
        -- A call inside another call is a part of it.
        coalesce(a.end_ns > max(a.end_ns) OVER (
            PARTITION BY g.gap_id ORDER BY a.start_ns, a.end_ns DESC, a.turn, a.host
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), true) AS is_outermost
    FROM (
        SELECT late.*, slice_ns, unnest(range(start_ns // slice_ns, until_ns // slice_ns + 1)) AS slice
        FROM late CROSS JOIN slicing
    ) AS g
    JOIN (
        SELECT a.*, unnest(range(greatest(start_ns, first_ns) // slice_ns, least(end_ns, last_ns) // slice_ns + 1)) AS slice
        FROM named AS a CROSS JOIN slicing
        WHERE a.start_ns < last_ns AND a.end_ns > first_ns
    ) AS a ON a.process_id = g.process_id AND a.thread_id = g.thread_id AND a.slice = g.slice
    WHERE a.start_ns < g.until_ns AND a.end_ns > g.start_ns
        AND g.slice = greatest(g.start_ns // slice_ns, a.start_ns // slice_ns)
),
explanations AS (
    SELECT gap_id, host, cause, sum(overlap_ns)::BIGINT AS host_ns FROM during WHERE is_outermost OR turn = 0 GROUP BY ALL
    UNION ALL
    SELECT gap_id, 'CPU work', 'starved', greatest(until_ns - start_ns, 0) - coalesce(covered_ns, 0)
    FROM late
    LEFT JOIN (SELECT gap_id, sum(overlap_ns)::BIGINT AS covered_ns FROM during WHERE is_outermost GROUP BY ALL) USING (gap_id)
    UNION ALL
    SELECT gap_id, 'launch latency', 'starved', end_ns - greatest(until_ns, start_ns) FROM late
    UNION ALL
    SELECT gap_id, in_time, CASE in_time WHEN 'managed memory' THEN 'starved' ELSE 'dependency' END, duration_ns FROM launched WHERE in_time IS NOT NULL
),
explained AS (
    SELECT gap_id, host, cause, host_ns
    FROM explanations JOIN listed USING (gap_id)
    QUALIFY row_number() OVER (
        PARTITION BY gap_id
        ORDER BY (cause = 'profiler' AND 2 * host_ns >= duration_ns) DESC, host_ns DESC, host
    ) = 1
),
-- Only the few ranges that are open at one of these instants are worth a path.
instants AS MATERIALIZED (
    SELECT gap_id, process_id, thread_id, least(start_ns, call_start_ns) AS at_ns FROM launched WHERE thread_id IS NOT NULL
),
open_ranges AS MATERIALIZED (
    SELECT r.*
    FROM nvtx_ranges AS r
    ASOF JOIN instants AS i ON i.process_id = r.process_id AND i.thread_id = r.thread_id AND i.at_ns >= r.start_ns
    WHERE r.style = 'push/pop' AND coalesce(r.end_ns > i.at_ns, true)
),
paths AS (
    SELECT i.gap_id, string_agg(r.name, '/' ORDER BY r.start_ns, r.end_ns DESC NULLS FIRST, r.name) AS path
    FROM instants AS i
    JOIN open_ranges AS r ON r.process_id = i.process_id AND r.thread_id = i.thread_id
    WHERE r.start_ns <= i.at_ns AND coalesce(r.end_ns > i.at_ns, true)
    GROUP BY i.gap_id
)
SELECT
    g.start_ns,
    g.duration_ns,
    100.0 * g.duration_ns / (SELECT sum(duration_ns) FROM wall) AS wall_pct,
    100.0 * g.duration_ns / g.idle_ns AS idle_pct,
    coalesce(e.cause, 'unknown') AS cause,
    e.host,
    e.host_ns,
    g.before_name,
    g.after_name,
    p.path AS nvtx_path,
    g.gpu_id,
    g.process_id,
    g.thread_id,
    g.end_ns
FROM launched AS g
LEFT JOIN explained AS e USING (gap_id)
LEFT JOIN paths AS p USING (gap_id)
ORDER BY g.gap_id
