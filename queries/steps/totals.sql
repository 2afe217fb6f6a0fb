-- What the pieces hold. Calls belong to the piece in whose host interval they begin, GPU operations to that of their launch
-- call; those whose call the trace lacks to the piece in whose wall interval they start.
CREATE OR REPLACE TABLE step_totals AS
WITH calls AS (
    SELECT
        p.piece,
        sum(c.duration_ns)::BIGINT AS api_ns,
        coalesce(sum(c.duration_ns) FILTER (c.call_group IN ('launch', 'graph launch')), 0)::BIGINT AS api_launch_ns,
        coalesce(sum(c.duration_ns) FILTER (c.call_group = 'sync'), 0)::BIGINT AS api_sync_ns,
        coalesce(sum(c.duration_ns) FILTER (c.call_group IN ('copy', 'memset')), 0)::BIGINT AS api_copy_ns,
        coalesce(sum(c.duration_ns) FILTER (c.call_group IN ('alloc', 'free')), 0)::BIGINT AS api_alloc_ns,
        count(*) FILTER (c.call_group IN ('launch', 'graph launch')) AS launch_calls,
        count(*) FILTER (c.call_group = 'graph launch') AS graph_launches,
        count(*) FILTER (c.call_group = 'alloc') AS mallocs,
        count(*) FILTER (c.call_group = 'free') AS frees,
        count(*) FILTER (c.call_group = 'sync') AS sync_calls
    FROM outer_api_calls AS c
    ASOF JOIN step_pieces AS p ON p.process_id = c.process_id AND p.host_start_ns <= c.start_ns
    WHERE c.start_ns < p.host_end_ns
    GROUP BY p.piece
),
waited AS (
    SELECT p.piece, count(*) AS sync_points
    FROM waits AS w
    ASOF JOIN step_pieces AS p ON p.process_id = w.process_id AND p.host_start_ns <= w.start_ns
    WHERE w.start_ns < p.host_end_ns
    GROUP BY p.piece
),
clocks AS (
    SELECT piece, true AS is_host, host_start_ns AS from_ns, host_end_ns AS to_ns FROM step_pieces
    UNION ALL
    SELECT piece, false, start_ns, end_ns FROM step_pieces
),
work AS (
    SELECT
        p.piece,
        count(*) FILTER (o.kind = 'kernel') AS kernels,
        coalesce(sum(o.end_ns - o.start_ns) FILTER (o.kind = 'kernel'), 0)::BIGINT AS kernel_ns,
        quantile_cont(o.end_ns - o.start_ns, 0.5) FILTER (o.kind = 'kernel') AS kernel_med_ns,
        count(*) FILTER (o.kind = 'graph') AS graphs,
        count(*) FILTER (o.kind = 'H2D') AS h2d_copies,
        coalesce(sum(o.size_bytes) FILTER (o.kind = 'H2D'), 0)::BIGINT AS h2d_bytes,
        count(*) FILTER (o.kind = 'D2H') AS d2h_copies,
        coalesce(sum(o.size_bytes) FILTER (o.kind = 'D2H'), 0)::BIGINT AS d2h_bytes
    FROM step_launched AS o
    ASOF JOIN clocks AS p ON p.is_host = (o.call_ns IS NOT NULL) AND p.from_ns <= coalesce(o.call_ns, o.start_ns)
    WHERE coalesce(o.call_ns, o.start_ns) < p.to_ns
    GROUP BY p.piece
),
gpus_used AS (
    SELECT DISTINCT coalesce(d.gpu_id, o.device_id) AS gpu_id
    FROM (SELECT DISTINCT device_id FROM step_launched) AS o
    LEFT JOIN devices AS d ON d.process_id = $process AND d.device_id = o.device_id
),
-- How long a GPU was busy up to an instant follows from the last interval that began before it.
busy AS (
    SELECT
        gpu_id, start_ns, end_ns,
        sum(duration_ns) OVER (PARTITION BY gpu_id ORDER BY start_ns ROWS UNBOUNDED PRECEDING)::BIGINT AS busy_ns
    FROM gpu_busy
),
reached AS (
    SELECT g.gpu_id, g.piece, g.sign, coalesce(b.busy_ns + least(b.end_ns, g.at_ns) - b.end_ns, 0) AS busy_ns
    FROM (
        SELECT gpu_id, piece, unnest([start_ns, end_ns]) AS at_ns, unnest([-1, 1]) AS sign
        FROM step_pieces CROSS JOIN gpus_used
    ) AS g
    ASOF LEFT JOIN busy AS b ON b.gpu_id = g.gpu_id AND b.start_ns <= g.at_ns
),
worked AS (
    SELECT piece, map(list(gpu_id ORDER BY gpu_id), list(busy_ns ORDER BY gpu_id)) AS gpus, avg(busy_ns)::BIGINT AS gpu_busy_ns
    FROM (SELECT piece, gpu_id, sum(sign * busy_ns)::BIGINT AS busy_ns FROM reached GROUP BY piece, gpu_id)
    GROUP BY piece
)
SELECT
    p.*,
    p.end_ns - p.start_ns AS duration_ns,
    w.gpus,
    coalesce(w.gpu_busy_ns, 0) AS gpu_busy_ns,
    p.end_ns - p.start_ns - coalesce(w.gpu_busy_ns, 0) AS gpu_idle_ns,
    -- Of a graph that ran as a whole nobody knows the kernels.
    CASE WHEN coalesce(o.graphs, 0) = 0 THEN coalesce(o.kernels, 0) END AS kernels,
    CASE WHEN coalesce(o.graphs, 0) = 0 THEN coalesce(o.kernel_ns, 0) END AS kernel_ns,
    CASE WHEN coalesce(o.graphs, 0) = 0 THEN o.kernel_med_ns END AS kernel_med_ns,
    coalesce(c.launch_calls, 0) AS launch_calls,
    coalesce(c.graph_launches, 0) AS graph_launches,
    coalesce(c.api_ns, 0) AS api_ns,
    coalesce(c.api_launch_ns, 0) AS api_launch_ns,
    coalesce(c.api_sync_ns, 0) AS api_sync_ns,
    coalesce(c.api_copy_ns, 0) AS api_copy_ns,
    coalesce(c.api_alloc_ns, 0) AS api_alloc_ns,
    coalesce(c.api_ns - c.api_launch_ns - c.api_sync_ns - c.api_copy_ns - c.api_alloc_ns, 0) AS api_other_ns,
    coalesce(c.sync_calls, 0) AS sync_calls,
    coalesce(s.sync_points, 0) AS sync_points,
    coalesce(c.mallocs, 0) AS mallocs,
    coalesce(c.frees, 0) AS frees,
    coalesce(o.h2d_copies, 0) AS h2d_copies,
    coalesce(o.h2d_bytes, 0) AS h2d_bytes,
    coalesce(o.d2h_copies, 0) AS d2h_copies,
    coalesce(o.d2h_bytes, 0) AS d2h_bytes
FROM step_pieces AS p
LEFT JOIN calls AS c USING (piece)
LEFT JOIN waited AS s USING (piece)
LEFT JOIN work AS o USING (piece)
LEFT JOIN worked AS w USING (piece)
