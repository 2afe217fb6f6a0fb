-- Idle time is split by `_idle_in` over windows that are cut where a wait let the GPU run dry and where that wait ended: so
-- one pass tells what a wait cost, also after it. What a wait costs is bounded by how long it held the host up: without it
-- the host would have launched that much earlier. Busy time that copies or communication alone account for is the union of
-- all operations less the union of the others: each operation's part after the latest end so far of the one, less of the other.
CREATE TABLE IF NOT EXISTS facts.step_budget (
    step BIGINT, gpu_id BIGINT, part VARCHAR, host VARCHAR, time_ns BIGINT
);

INSERT INTO facts.step_budget BY NAME
WITH steady AS (
    SELECT step, start_ns, end_ns, greatest(kernels - (launch_calls - graph_launches), 0) AS graph_kernels
    FROM steps WHERE phase = 'steady'
),
owners AS (
    FROM steady
    UNION ALL
    SELECT NULL, start_ns, end_ns, NULL FROM wall WHERE NOT EXISTS (FROM steady)
),
owner_gpus AS (
    SELECT step, gpu_id, busy_ns FROM step_gpus WHERE phase = 'steady'
    UNION ALL
    SELECT NULL, gpu_id, busy_ns FROM used_gpus WHERE NOT EXISTS (FROM steady)
),
-- Gaps in which a wait ended that let the GPU run dry, with the last one to end and how long such waits held the host; and
-- gaps before a copy to the host.
waiting AS MATERIALIZED (
    SELECT *, CASE WHEN copy_kind = 'D2H' THEN 'D2H copy' WHEN is_copy THEN copy_kind || ' copy' ELSE 'wait' END AS waited_for
    FROM waits
),
gpus_used AS (
    SELECT DISTINCT process_id, device_id, gpu_of(process_id, device_id) AS gpu_id FROM gpu_ops
),
reads AS MATERIALIZED (
    SELECT DISTINCT u.gpu_id, m.start_ns
    FROM memcpys AS m
    JOIN gpus_used AS u USING (process_id, device_id)
    WHERE m.copy_kind = 'D2H'
),
near AS MATERIALIZED (
    FROM gpu_gaps
    WHERE start_ns // 16384 IN (SELECT end_ns // 16384 FROM waiting)
        OR end_ns // 16384 IN (SELECT end_ns // 16384 FROM waiting) OR duration_ns >= 16384
        OR end_ns IN (SELECT start_ns FROM reads)
),
waited AS (
    SELECT
        g.gpu_id, g.start_ns, max(w.end_ns) AS waited_ns, sum(w.wait_ns)::BIGINT AS wait_ns,
        arg_max(w.waited_for, (w.end_ns, w.correlation_id)) AS waited_for
    FROM (
        SELECT w.*, u.gpu_id
        FROM waiting AS w
        JOIN gpus_used AS u ON u.process_id = w.process_id AND u.device_id = coalesce(w.device_id, u.device_id)
    ) AS w
    ASOF JOIN near AS g ON g.gpu_id = w.gpu_id AND g.start_ns <= w.end_ns
    WHERE w.end_ns < g.end_ns AND w.start_ns <= g.start_ns
    GROUP BY ALL
),
dried AS MATERIALIZED (
    SELECT
        g.gpu_id, g.start_ns, g.end_ns, w.waited_ns, w.wait_ns, w.waited_for,
        r.start_ns IS NOT NULL AS is_read
    FROM near AS g
    LEFT JOIN waited AS w ON w.gpu_id = g.gpu_id AND w.start_ns = g.start_ns
    LEFT JOIN reads AS r ON r.gpu_id = g.gpu_id AND r.start_ns = g.end_ns
    WHERE w.start_ns IS NOT NULL OR r.start_ns IS NOT NULL
),
cuts AS (
    SELECT unnest([start_ns, end_ns]) AS start_ns FROM owners
    UNION
    SELECT unnest([start_ns, coalesce(waited_ns, start_ns), end_ns]) FROM dried
),
windows AS MATERIALIZED (
    SELECT c.start_ns, least(c.end_ns, o.end_ns) AS end_ns, o.step, o.graph_kernels
    FROM (SELECT start_ns, lead(start_ns) OVER (ORDER BY start_ns) AS end_ns FROM cuts) AS c
    ASOF JOIN owners AS o ON o.start_ns <= c.start_ns
    WHERE c.start_ns < o.end_ns
),
placed AS (
    SELECT
        w.step, w.graph_kernels, i.gpu_id, i.cause, i.host, i.idle_ns,
        i.window_ns < d.end_ns AS is_inside,
        d.start_ns AS gap_ns,
        CASE WHEN is_inside THEN d.waited_for END AS waited_for,
        d.wait_ns,
        is_inside AND i.window_ns < d.waited_ns AS is_waiting,
        is_inside AND i.window_ns >= d.waited_ns AS is_after,
        is_inside AND d.is_read AS is_read
    FROM _idle_in('windows') AS i
    JOIN windows AS w ON w.start_ns = i.window_ns
    SEMI JOIN owner_gpus AS g ON g.step IS NOT DISTINCT FROM w.step AND g.gpu_id = i.gpu_id
    ASOF LEFT JOIN dried AS d ON d.gpu_id = i.gpu_id AND d.start_ns <= i.window_ns
),
idle AS (
    SELECT
        * EXCLUDE (cause, is_inside),
        CASE
            WHEN cause IN ('profiler', 'edge', 'unknown', 'allocation') THEN cause
            WHEN host = 'sync calls' THEN 'sync'
            WHEN is_waiting AND host = 'blocking copies' THEN CASE WHEN waited_for IN ('D2H copy', 'wait') THEN 'sync' ELSE 'copy' END
            WHEN is_read AND host = 'blocking copies' THEN 'sync'
            WHEN host = 'blocking copies' THEN 'copy'
            WHEN cause = 'starved' OR host = 'launch call under way' THEN 'launch'
            ELSE cause
        END AS part
    FROM placed
),
-- Tracing a graph by its nodes adds half a microsecond for each kernel to the launch call of the graph: 0.57 µs on an H200,
-- where the same call took 0.1 µs for each with the graph traced as a whole. That much is the profiler's.
traced AS (
    SELECT
        *,
        CASE WHEN part = 'launch' AND host IN ('launch call', 'launch call under way') AND graph_kernels > 0 THEN
            round(idle_ns * least(1, 500 * graph_kernels / sum(idle_ns) OVER (
                PARTITION BY step, gpu_id, part, host IN ('launch call', 'launch call under way'))))::BIGINT
        ELSE 0 END AS tracing_ns
    FROM idle
),
charged AS (
    SELECT
        *,
        CASE WHEN part = 'launch' AND is_after AND waited_for IS NOT NULL THEN
            round((idle_ns - tracing_ns) * least(1, greatest(
                wait_ns - coalesce(sum(idle_ns) FILTER (is_waiting AND part IN ('sync', 'copy')) OVER of_gap, 0), 0
            ) / nullif(sum(idle_ns - tracing_ns) FILTER (part = 'launch' AND is_after) OVER of_gap, 0)))::BIGINT
        END AS after_wait_ns
    FROM traced
    WINDOW of_gap AS (PARTITION BY gpu_id, gap_ns, is_waiting OR is_after)
),
-- gpu: kernels, memsets, whole graphs, and copies within a GPU's memory.
work AS (
    SELECT
        gpu_id, start_ns, end_ns,
        CASE
            WHEN name_id IN (SELECT name_id FROM kernel_names WHERE family = 'comm') THEN 1
            WHEN copy_kind <> 'D2D' THEN 2
            ELSE 0
        END AS level
    FROM _gpu_work
),
reach AS (
    SELECT
        *,
        coalesce(max(end_ns) FILTER (level = 0) OVER along, start_ns) AS gpu_ns,
        coalesce(max(end_ns) FILTER (level <= 1) OVER along, start_ns) AS kernels_ns,
        coalesce(max(end_ns) OVER along, start_ns) AS all_ns
    FROM work
    WINDOW along AS (PARTITION BY gpu_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
-- cut_to wants intervals that are disjoint for each gpu_id, so a GPU's four kinds of pieces have one each.
pieces AS (
    SELECT 4 * gpu_id AS gpu_id, greatest(start_ns, kernels_ns) AS start_ns, end_ns FROM reach WHERE level = 1
    UNION ALL
    SELECT 4 * gpu_id + 1, greatest(start_ns, gpu_ns), least(end_ns, kernels_ns) FROM reach WHERE level = 0
    UNION ALL
    SELECT 4 * gpu_id + 2, greatest(start_ns, all_ns), end_ns FROM reach WHERE level = 2
    UNION ALL
    SELECT 4 * gpu_id + 3, greatest(start_ns, kernels_ns), least(end_ns, all_ns) FROM reach WHERE level <= 1
),
real_pieces AS (
    FROM pieces WHERE end_ns > start_ns
),
alone AS (
    SELECT
        o.step, p.gpu_id // 4 AS gpu_id,
        coalesce(sum(p.end_ns - p.start_ns) FILTER (p.gpu_id % 4 = 0), 0)
            - coalesce(sum(p.end_ns - p.start_ns) FILTER (p.gpu_id % 4 = 1), 0) AS communication_ns,
        coalesce(sum(p.end_ns - p.start_ns) FILTER (p.gpu_id % 4 = 2), 0)
            - coalesce(sum(p.end_ns - p.start_ns) FILTER (p.gpu_id % 4 = 3), 0) AS copy_ns
    FROM cut_to('real_pieces', 'owners') AS p
    JOIN owners AS o ON o.start_ns = p.window_ns
    GROUP BY ALL
),
budget AS (
    SELECT
        g.step, g.gpu_id, unnest(['gpu', 'communication', 'copy']) AS part, NULL AS host,
        unnest([
            g.busy_ns - coalesce(a.communication_ns, 0) - coalesce(a.copy_ns, 0),
            coalesce(a.communication_ns, 0), coalesce(a.copy_ns, 0)
        ]) AS time_ns
    FROM owner_gpus AS g
    LEFT JOIN alone AS a ON a.step IS NOT DISTINCT FROM g.step AND a.gpu_id = g.gpu_id
    UNION ALL
    SELECT
        step, gpu_id, part,
        CASE WHEN part = 'sync' THEN CASE WHEN is_read OR waited_for = 'D2H copy' THEN 'D2H copy' ELSE 'wait' END ELSE host END,
        idle_ns - tracing_ns - coalesce(after_wait_ns, 0)
    FROM charged
    UNION ALL
    SELECT step, gpu_id, 'profiler', 'tracing of graph nodes', tracing_ns FROM charged
    UNION ALL
    SELECT
        step, gpu_id, CASE WHEN waited_for IN ('D2H copy', 'wait') THEN 'sync' ELSE 'copy' END,
        CASE WHEN waited_for IN ('D2H copy', 'wait') THEN waited_for ELSE 'blocking copies' END, after_wait_ns
    FROM charged
)
SELECT step, gpu_id, part, host, sum(time_ns)::BIGINT AS time_ns
FROM budget
WHERE time_ns > 0
GROUP BY ALL;
