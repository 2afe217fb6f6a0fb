-- What the pieces contain. A call belongs to the piece in whose host interval it begins. A GPU operation belongs to the
-- piece of its launch call; if the trace lacks the call, to the piece in whose step time it starts. Each table is a
-- statement of its own: a single statement would need more memory than there is.
CREATE OR REPLACE VIEW internal.step_hosts AS
SELECT piece, host_start_ns AS start_ns, host_end_ns AS end_ns FROM internal.step_pieces;

CREATE OR REPLACE TABLE internal.step_counted AS
WITH calls AS (
    SELECT thread_id, call_group, start_ns, duration_ns FROM outer_api_calls WHERE process_id = $process
)
SELECT piece, thread_id, call_group, count(*) AS calls, sum(duration_ns)::BIGINT AS time_ns
FROM begun_in('calls', 'internal.step_hosts')
GROUP BY piece, thread_id, call_group;

CREATE OR REPLACE TABLE internal.step_calls AS
SELECT
    piece,
    sum(time_ns)::BIGINT AS api_ns,
    coalesce(sum(time_ns) FILTER (call_group IN ('launch', 'graph launch')), 0)::BIGINT AS api_launch_ns,
    coalesce(sum(time_ns) FILTER (call_group = 'sync'), 0)::BIGINT AS api_sync_ns,
    coalesce(sum(time_ns) FILTER (call_group IN ('copy', 'memset')), 0)::BIGINT AS api_copy_ns,
    coalesce(sum(time_ns) FILTER (call_group IN ('alloc', 'free')), 0)::BIGINT AS api_alloc_ns,
    coalesce(sum(calls) FILTER (call_group IN ('launch', 'graph launch')), 0)::BIGINT AS launch_calls,
    coalesce(sum(calls) FILTER (call_group = 'graph launch'), 0)::BIGINT AS graph_launches,
    coalesce(sum(calls) FILTER (call_group = 'alloc'), 0)::BIGINT AS mallocs,
    coalesce(sum(calls) FILTER (call_group = 'free'), 0)::BIGINT AS frees,
    coalesce(sum(calls) FILTER (call_group = 'sync'), 0)::BIGINT AS sync_calls
FROM internal.step_counted
GROUP BY piece;

CREATE OR REPLACE TABLE internal.step_waits AS
SELECT p.piece, count(*) AS sync_points
FROM waits AS w
ASOF JOIN internal.step_pieces AS p ON p.host_start_ns <= w.start_ns
WHERE w.start_ns < p.host_end_ns AND w.process_id = $process
GROUP BY p.piece;

CREATE OR REPLACE VIEW internal.step_owned AS
WITH called_operations AS (
    SELECT * RENAME (start_ns AS op_ns), call_ns AS start_ns FROM internal.step_launched WHERE call_ns IS NOT NULL
)
SELECT * EXCLUDE (start_ns, window_ns, window_end_ns) RENAME (op_ns AS start_ns), end_ns - op_ns AS duration_ns
FROM begun_in('called_operations', 'internal.step_hosts')
UNION ALL BY NAME
SELECT p.piece, o.*, o.end_ns - o.start_ns AS duration_ns
FROM (FROM internal.step_launched WHERE call_ns IS NULL) AS o
ASOF JOIN internal.step_pieces AS p ON p.start_ns <= o.start_ns
WHERE o.start_ns < p.end_ns;

CREATE OR REPLACE TABLE internal.step_work AS
SELECT
    piece,
    count(*) FILTER (kind = 'kernel') AS kernels,
    coalesce(sum(duration_ns) FILTER (kind = 'kernel'), 0)::BIGINT AS kernel_ns,
    quantile_cont(duration_ns, 0.5) FILTER (kind = 'kernel') AS kernel_med_ns,
    count(*) FILTER (kind = 'graph') AS graphs,
    count(*) FILTER (kind = 'H2D') AS h2d_copies,
    coalesce(sum(size_bytes) FILTER (kind = 'H2D'), 0)::BIGINT AS h2d_bytes,
    count(*) FILTER (kind = 'D2H') AS d2h_copies,
    coalesce(sum(size_bytes) FILTER (kind = 'D2H'), 0)::BIGINT AS d2h_bytes,
    -- Kernels with their own launch call, for `facts.step_launches`. `graph_launches.sql` adds graphs.
    count(*) FILTER (is_launched) AS launches, 0 AS graph_launches,
    sum(start_ns - call_ns) FILTER (is_launched) AS launch_queue_ns,
    sum(start_ns - returned_ns) FILTER (is_launched AND start_ns > returned_ns) AS queue_ns,
    count(*) FILTER (is_launched AND start_ns >= returned_ns + 10000) AS ahead_calls,
    max(end_ns) AS done_ns
FROM (
    SELECT *, kind = 'kernel' AND call_group = 'launch' AND start_ns >= call_ns AS is_launched FROM internal.step_owned
)
GROUP BY piece;

CREATE OR REPLACE TABLE internal.step_busy AS
WITH gpus_used AS (
    SELECT DISTINCT gpu_of($process, device_id) AS gpu_id
    FROM internal.step_launched
    WHERE gpu_of($process, device_id) IS NOT NULL
),
intervals AS NOT MATERIALIZED (
    FROM _gpu_busy_parts
),
pieces AS (
    FROM internal.step_pieces
),
busy AS (
    SELECT window_ns, gpu_id, sum(end_ns - start_ns)::BIGINT AS busy_ns
    FROM cut_to('intervals', 'pieces')
    GROUP BY window_ns, gpu_id
)
SELECT
    p.piece, map(list(g.gpu_id ORDER BY g.gpu_id), list(coalesce(b.busy_ns, 0) ORDER BY g.gpu_id)) AS gpus,
    avg(coalesce(b.busy_ns, 0))::BIGINT AS gpu_busy_ns
FROM internal.step_pieces AS p
CROSS JOIN gpus_used AS g
LEFT JOIN busy AS b ON b.window_ns = CASE WHEN p.end_ns > p.start_ns THEN p.start_ns END AND b.gpu_id = g.gpu_id
GROUP BY p.piece;

CREATE OR REPLACE TABLE internal.step_totals AS
SELECT
    p.*,
    p.end_ns - p.start_ns AS duration_ns,
    w.gpus,
    coalesce(w.gpu_busy_ns, 0) AS gpu_busy_ns,
    p.end_ns - p.start_ns - coalesce(w.gpu_busy_ns, 0) AS gpu_idle_ns,
    -- The kernels of a graph that was traced without them are unknown.
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
FROM internal.step_pieces AS p
LEFT JOIN internal.step_calls AS c USING (piece)
LEFT JOIN internal.step_waits AS s USING (piece)
LEFT JOIN internal.step_work AS o USING (piece)
LEFT JOIN internal.step_busy AS w USING (piece);

SELECT count(*) AS graph_operations FROM internal.step_launched WHERE call_group = 'graph launch'
