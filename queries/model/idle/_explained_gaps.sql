/*
description = "The gaps of `longest_gaps`, each with its cause and its place in the program."
stored = true
[columns]
gap_id = "Number of the gap, as in `longest_gaps`"
start_ns = "When the GPU became idle"
end_ns = "When the next operation started"
duration_ns = "end_ns - start_ns"
idle_pct = "Share of the idle time of all gaps in scope"
cause = "The cause of most of it, as in `gpu_idle`"
host = "What the host did for most of it, as in the report gaps"
host_ns = "Time of the gap that host took"
before_name = "The operation before the gap"
after_name = "The operation after it"
nvtx_path = """The NVTX ranges of the launching thread that hold most of the gap, or the launch call if that was before
    the gap; NULL outside all ranges"""
process_id = "Process that launched the operation after it"
thread_id = "Thread that launched it"
correlation_id = "Id of the call that launched it; NULL where no call launched it"
*/
-- The cause of a gap is determined from the calls of the thread that launched the operation after it. The report `gaps`
-- documents the rules.
WITH gaps AS (
    FROM longest_gaps
),
-- The operations on either side. If several start or end at the same instant, the operation of the earlier call counts.
before_gap AS (
    SELECT g.gap_id, o.name, o.process_id, o.correlation_id
    FROM gaps AS g
    JOIN _gap_operations AS o ON o.gpu_id = g.gpu_id AND o.end_ns = g.running_end_ns
    QUALIFY row_number() OVER (PARTITION BY g.gap_id ORDER BY o.correlation_id, o.process_id, o.start_ns DESC, o.name)
        = 1
),
after_gap AS (
    SELECT g.gap_id, o.name, o.process_id, o.correlation_id
    FROM gaps AS g
    JOIN _gap_operations AS o ON o.gpu_id = g.gpu_id AND o.start_ns = g.next_ns
    QUALIFY row_number() OVER (PARTITION BY g.gap_id ORDER BY o.correlation_id, o.process_id, o.end_ns, o.name) = 1
),
-- Times are compared only within the same time slice: a millisecond, or longer if the gaps are far apart.
slicing AS MATERIALIZED (
    SELECT
        min(start_ns) AS first_ns, max(end_ns) AS last_ns, greatest(1000000, (last_ns - first_ns) // 100000) AS slice_ns
    FROM gaps
),
-- Gaps with the launch call of the operation after them. in_time: why the host was not late.
gaps_with_launch AS MATERIALIZED (
    SELECT
        g.gap_id, g.gpu_id, g.start_ns, g.end_ns, g.duration_ns, g.idle_ns, b.name AS before_name, a.name AS after_name,
        coalesce(c.process_id, p.process_id) AS process_id, coalesce(c.thread_id, p.thread_id) AS thread_id,
        coalesce(c.start_ns, p.start_ns) AS call_start_ns, a.correlation_id,
        least(coalesce(c.end_ns, p.end_ns), g.end_ns) AS until_ns,
        CASE
            WHEN p.start_ns < g.running_end_ns THEN 'launch call in progress'
            WHEN p.start_ns IS NOT NULL THEN NULL
            WHEN a.name LIKE 'UM % copy' AND c.start_ns IS NULL THEN 'managed memory'
            WHEN d.call_ns IS NOT NULL THEN CASE WHEN d.call_ns <= g.running_end_ns THEN 'launched before the gap' END
            WHEN c.end_ns <= g.running_end_ns OR (a.process_id, a.correlation_id) = (b.process_id, b.correlation_id)
                THEN 'launched before the gap'
            -- As `facts.idle_time` has it: the call returned early in a gap that goes on for long.
            WHEN c.start_ns < g.running_end_ns AND g.next_ns - c.end_ns >= 50000
                AND 10 * (c.end_ns - g.running_end_ns) <= g.next_ns - g.running_end_ns
                THEN 'launched before the gap'
            WHEN c.start_ns < g.running_end_ns THEN 'launch call in progress'
        END AS in_time
    FROM gaps AS g
    LEFT JOIN before_gap AS b USING (gap_id)
    LEFT JOIN after_gap AS a USING (gap_id)
    LEFT JOIN (
        SELECT process_id, correlation_id, min(thread_id) AS thread_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns
        FROM _gap_activity WHERE kind = 'api' GROUP BY ALL
    ) AS c ON c.process_id = a.process_id AND c.correlation_id = a.correlation_id
    -- A migration belongs to the call that asks for it, if that is in progress.
    LEFT JOIN (
        SELECT process_id, thread_id, start_ns, end_ns
        FROM _gap_activity JOIN _api_names USING (name_id)
        WHERE kind = 'api' AND name LIKE '%MemPrefetch%'
    ) AS p
        ON a.name LIKE 'UM % copy' AND c.start_ns IS NULL AND p.process_id = a.process_id
        AND g.next_ns BETWEEN p.start_ns AND p.end_ns
    LEFT JOIN _device_launches AS d ON d.process_id = a.process_id AND d.start_ns = g.next_ns
),
late_gaps AS MATERIALIZED (
    FROM gaps_with_launch WHERE in_time IS NULL AND thread_id IS NOT NULL
),
-- What a host did, with the cause of idle time that it stands for.
named_activity AS (
    SELECT
        a.process_id, a.thread_id, a.start_ns, a.end_ns,
        CASE a.kind
            WHEN 'api' THEN n.call_group || ': ' || n.name
            WHEN 'mpi' THEN 'MPI: ' || n.name
            WHEN 'os' THEN 'OS: ' || n.name
            ELSE 'profiler: ' || n.name
        END AS host,
        CASE
            WHEN host IS NULL THEN NULL
            WHEN a.kind = 'profiler' THEN 'profiler'
            WHEN a.kind = 'api' AND b.correlation_id IS NOT NULL THEN if(b.is_to_host, 'sync', 'copy')
            WHEN a.kind = 'api' AND n.call_group = 'sync' THEN 'sync'
            WHEN a.kind = 'api' AND n.call_group IN ('alloc', 'free') THEN 'allocation'
            ELSE 'launch'
        END AS cause,
        CASE a.kind WHEN 'profiler' THEN 0 WHEN 'os' THEN 2 ELSE 1 END AS turn
    FROM _gap_activity AS a
    LEFT JOIN _api_names AS n USING (name_id)
    LEFT JOIN _gap_copies AS b ON b.process_id = a.process_id AND b.correlation_id = a.correlation_id
),
-- What the launching thread did in each late gap.
thread_activity AS MATERIALIZED (
    SELECT
        g.gap_id, a.host, a.cause, a.turn, least(a.end_ns, g.until_ns) - greatest(a.start_ns, g.start_ns) AS overlap_ns,
        -- A call inside another call is a part of it.
        coalesce(a.end_ns > max(a.end_ns) OVER (
            PARTITION BY g.gap_id ORDER BY a.start_ns, a.end_ns DESC, a.turn, a.host
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), true) AS is_outermost
    FROM (
        SELECT late_gaps.*, slice_ns, unnest(range(start_ns // slice_ns, until_ns // slice_ns + 1)) AS slice
        FROM late_gaps CROSS JOIN slicing
    ) AS g
    JOIN (
        SELECT
            a.*,
            unnest(range(greatest(start_ns, first_ns) // slice_ns, least(end_ns, last_ns) // slice_ns + 1)) AS slice
        FROM named_activity AS a CROSS JOIN slicing
        WHERE a.start_ns < last_ns AND a.end_ns > first_ns
    ) AS a ON a.process_id = g.process_id AND a.thread_id = g.thread_id AND a.slice = g.slice
    WHERE a.start_ns < g.until_ns AND a.end_ns > g.start_ns
        AND g.slice = greatest(g.start_ns // slice_ns, a.start_ns // slice_ns)
),
-- What the operation waited for on the GPU, after its launch call.
waits AS (
    SELECT gap_id, sum(time_ns) AS time_ns FROM facts.listed_waits GROUP BY ALL
),
explanations AS (
    SELECT gap_id, host, cause, sum(overlap_ns)::BIGINT AS host_ns
    FROM thread_activity
    WHERE is_outermost OR turn = 0
    GROUP BY ALL
    UNION ALL
    SELECT gap_id, 'CPU work', 'launch', greatest(until_ns - start_ns, 0) - coalesce(covered_ns, 0)
    FROM late_gaps
    LEFT JOIN (
        SELECT gap_id, sum(overlap_ns)::BIGINT AS covered_ns FROM thread_activity WHERE is_outermost GROUP BY ALL
    ) USING (gap_id)
    UNION ALL
    SELECT gap_id, 'launch latency', 'launch', end_ns - greatest(until_ns, start_ns) - coalesce(time_ns, 0)
    FROM late_gaps LEFT JOIN waits USING (gap_id)
    UNION ALL
    SELECT gap_id, host, if(host = 'staged copy', 'copy', 'dependency'), time_ns FROM facts.listed_waits
    UNION ALL
    SELECT
        g.gap_id, g.in_time,
        CASE
            WHEN g.in_time = 'launched before the gap' THEN 'dependency'
            WHEN b.correlation_id IS NOT NULL THEN if(b.is_to_host, 'sync', 'copy')
            ELSE 'launch'
        END,
        g.duration_ns - coalesce(w.time_ns, 0)
    FROM gaps_with_launch AS g
    LEFT JOIN waits AS w USING (gap_id)
    LEFT JOIN _gap_copies AS b ON b.process_id = g.process_id AND b.correlation_id = g.correlation_id
    WHERE g.in_time IS NOT NULL
),
-- The explanation with the longest time for each gap; the profiler, if it takes half of the gap.
main_causes AS (
    SELECT gap_id, host, cause, host_ns
    FROM explanations JOIN gaps USING (gap_id)
    QUALIFY row_number() OVER (
        PARTITION BY gap_id
        ORDER BY (cause = 'profiler' AND 2 * host_ns >= duration_ns) DESC, host_ns DESC, host
    ) = 1
),
-- A range that covers most of a gap contains its middle. For operations launched in time, the launch call counts
-- instead. Only the few ranges that are open at one of these instants need a path.
instants AS MATERIALIZED (
    SELECT
        gap_id, process_id, thread_id,
        CASE WHEN in_time IS NULL THEN start_ns ELSE call_start_ns END AS from_ns,
        CASE WHEN in_time IS NULL THEN end_ns ELSE call_start_ns END AS to_ns,
        (from_ns + to_ns) // 2 AS at_ns
    FROM gaps_with_launch WHERE thread_id IS NOT NULL
),
open_ranges AS MATERIALIZED (
    SELECT r.*
    FROM nvtx_ranges AS r
    ASOF JOIN instants AS i ON i.process_id = r.process_id AND i.thread_id = r.thread_id AND i.at_ns >= r.start_ns
    WHERE coalesce(r.end_ns > i.at_ns, true)
),
paths AS (
    SELECT
        i.gap_id,
        coalesce(
            string_agg(r.name, '/' ORDER BY r.start_ns, r.end_ns DESC NULLS FIRST, r.name)
                FILTER (r.style = 'push/pop'),
            arg_max(r.name, (r.start_ns, r.name))
        ) AS path
    FROM instants AS i
    JOIN open_ranges AS r ON r.process_id = i.process_id AND r.thread_id = i.thread_id
    WHERE r.start_ns <= i.at_ns AND coalesce(r.end_ns > i.at_ns, true)
        AND 2 * (least(coalesce(r.end_ns, i.to_ns), i.to_ns) - greatest(r.start_ns, i.from_ns)) >= i.to_ns - i.from_ns
    GROUP BY i.gap_id
)
SELECT
    g.gap_id,
    g.start_ns,
    g.end_ns,
    g.duration_ns,
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
    g.correlation_id
FROM gaps_with_launch AS g
LEFT JOIN main_causes AS e USING (gap_id)
LEFT JOIN paths AS p USING (gap_id);
