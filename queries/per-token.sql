/*
title = "Cost per token or step"
aliases = ["per-step"]
description = """
Divides what happened in scope by the number of tokens (training steps, frames): --tokens, or one per range under --nvtx.
wall_ns is the scope's own time: the ranges of --nvtx, the window of --from and --to, else from the first to the last CUDA
event. gpu_busy_ns is the part of it in which a GPU worked (the union of kernels, copies, memsets and whole graphs, the
mean over the GPUs that were used), gpu_idle_ns the rest. launch_calls are the calls that put kernels on
the GPU, graph launches among them: one graph launch runs many kernels. Calls inside other calls are not counted, nor
their time added to api_ns.
A GPU is busy with whatever it does, also with what is not in scope."""
reading = """
gpu_idle_ns is what can be won without making a kernel faster: see gaps and syncs. Hundreds of launch calls per token at
a kernel_avg_ns of a few microseconds are launch-bound: use a CUDA graph (torch.compile mode reduce-overhead) or fuse.
Allocations per token should be 0: see mallocs. More than one sync call or D2H copy per token: the host reads back more
than the sampled token, see syncs."""
empty = "No CUDA events in this scope; if the program did use the GPU, capture with: nsys profile -t cuda"

[params.tokens]
type = "integer"
required_without = "nvtx"
least = 1
help = "How many tokens (steps, frames) the trace or scope holds; under --nvtx, one per range if not given"

[columns]
metric = "What was counted or measured"
total = "In the whole scope; NULL for a mean"
per_token = "total / tokens; for kernel_avg_ns the mean itself"
wall_pct = "Share of the wall, for times: kernels that overlap, and calls of several threads, may add up to more than 100 %"

[notes]
tokens = """
SELECT 'one token per range: ' || range_count || ' ranges match ' || nvtx FROM scope WHERE $tokens IS NULL"""
whole = """
SELECT 'the whole trace is divided, with its warm-up and prefill; narrow it with --nvtx RANGE or --from and --to'
FROM scope WHERE nvtx IS NULL AND from_ns IS NULL AND to_ns IS NULL AND EXISTS (FROM answer)"""
gpus = """
SELECT 'gpu_busy_ns and gpu_idle_ns are means over the ' || count(DISTINCT coalesce(d.gpu_id, o.device_id)) || ' GPUs that were used'
FROM (SELECT DISTINCT process_id, device_id FROM gpu_ops) AS o LEFT JOIN devices AS d USING (process_id, device_id)
HAVING count(DISTINCT coalesce(d.gpu_id, o.device_id)) > 1"""
graphs = """
SELECT 'CUDA graphs ran as a whole ' || count(*) || ' times: gpu_busy_ns includes them, but their kernels are in neither kernels nor kernel_ns; capture with --cuda-graph-trace=node to see them'
FROM graph_launches HAVING count(*) > 0"""
*/
WITH walls AS (
    SELECT sum(duration_ns)::BIGINT AS wall_ns FROM wall
),
gpus AS (
    SELECT coalesce(avg(busy_ns), 0)::BIGINT AS busy_ns FROM used_gpus
),
calls AS (
    SELECT
        coalesce(sum(duration_ns), 0)::BIGINT AS api_ns,
        count(*) FILTER (WHERE call_group IN ('launch', 'graph launch')) AS launch_calls,
        count(*) FILTER (WHERE call_group = 'graph launch') AS graph_launches,
        count(*) FILTER (WHERE call_group = 'alloc') AS mallocs,
        count(*) FILTER (WHERE call_group = 'free') AS frees,
        count(*) FILTER (WHERE call_group = 'sync') AS sync_calls
    FROM outer_api_calls
),
kernel_times AS (
    SELECT count(*) AS kernels, coalesce(sum(duration_ns), 0)::BIGINT AS kernel_ns FROM kernel_events
),
copies AS (
    SELECT
        count(*) FILTER (WHERE copy_kind = 'H2D') AS h2d_copies,
        coalesce(sum(size_bytes) FILTER (WHERE copy_kind = 'H2D'), 0)::BIGINT AS h2d_bytes,
        count(*) FILTER (WHERE copy_kind = 'D2H') AS d2h_copies,
        coalesce(sum(size_bytes) FILTER (WHERE copy_kind = 'D2H'), 0)::BIGINT AS d2h_bytes
    FROM memcpys
),
measured AS (
    SELECT m.*, w.wall_ns
    FROM walls AS w, gpus AS g, calls AS a, kernel_times AS k, copies AS c, LATERAL (
        VALUES
            (1, 'wall_ns', w.wall_ns),
            (2, 'gpu_busy_ns', g.busy_ns),
            (3, 'gpu_idle_ns', w.wall_ns - g.busy_ns),
            (5, 'kernel_ns', k.kernel_ns),
            (6, 'kernel_avg_ns', NULL),
            (7, 'kernels', k.kernels),
            (8, 'launch_calls', a.launch_calls),
            (9, 'graph_launches', a.graph_launches),
            (10, 'api_ns', a.api_ns),
            (11, 'sync_calls', a.sync_calls),
            (12, 'h2d_copies', c.h2d_copies),
            (13, 'h2d_bytes', c.h2d_bytes),
            (14, 'd2h_copies', c.d2h_copies),
            (15, 'd2h_bytes', c.d2h_bytes),
            (16, 'mallocs', a.mallocs),
            (17, 'frees', a.frees)
    ) AS m (place, metric, total)
    WHERE w.wall_ns IS NOT NULL
)
SELECT
    m.metric,
    m.total::BIGINT AS total,
    CASE
        WHEN m.metric = 'kernel_avg_ns' THEN k.kernel_ns / nullif(k.kernels, 0)
        ELSE m.total / coalesce($tokens, scope.range_count)
    END AS per_token,
    CASE WHEN m.metric IN ('wall_ns', 'gpu_busy_ns', 'gpu_idle_ns', 'kernel_ns', 'api_ns') THEN 100.0 * m.total / m.wall_ns END AS wall_pct
FROM measured AS m, kernel_times AS k, scope
ORDER BY m.place
