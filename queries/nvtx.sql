/*
title = "NVTX ranges: host time, and the GPU work launched inside"
aliases = ["nvtx_sum", "nvtx-sum"]
description = """
Host time is from opening to closing a range on its thread, own_host_ns the part of it in no range further inside. GPU work
belongs to the ranges that are open on the launching thread when its launch call begins, however late it runs: gpu_ns adds
up the kernels, copies, memsets and whole graphs launched inside, nested ranges included, each once per name; own_gpu_ns
is of those launched in no range further inside. projected_ns is, for each range, from the start of its first GPU
operation to the end of its last, idle time between them included. A range that was still open at the end of the capture
is counted, with its GPU work; its host time is not known. start/end ranges have no nesting, so nothing of their own."""
reading = """
Start with the range that repeats once per step, and compare its host_ns with its gpu_ns: a gpu_ns far below host_ns means
that the host is the limit, so see gaps and syncs with --nvtx NAME; about equal means that the GPU is, so see top with
--nvtx NAME. own_host_ns that is large in an outer range is work that no range names yet. Hundreds of kernels per call that
take little time are candidates for fusion or a CUDA graph. Work that another thread launches, as PyTorch's backward pass
does, is in that thread's ranges."""
empty = "No NVTX ranges in this scope: capture with nsys profile -t cuda,nvtx, and mark ranges in the program (torch.cuda.nvtx.range_push, nvtx.annotate, nvtxRangePush)"

[params.by]
default = "name"
choices = ["name", "path"]
help = "What one row stands for: all ranges of a name, or only those at the same place of the nesting"

[columns]
name = "The range's text, after its domain if it has one; or the names from the outermost range down to it"
style = "push/pop: nested on one thread; start/end: free"
calls = "How many ranges"
host_ns = "Sum of their host times"
wall_pct = "host_ns as a share of the wall; threads and nested ranges of one name may add up to more than 100 %"
own_host_ns = "Host time in no range further inside"
gpu_ns = "Sum of the durations of the GPU operations launched inside"
gpu_wall_pct = "gpu_ns as a share of the wall; operations that overlap may add up to more than 100 %"
own_gpu_ns = "The part of gpu_ns that was launched in no range further inside"
projected_ns = "From first start to last end of the GPU operations launched inside, summed over the ranges"
kernels = "Kernels launched inside, each once"
kernels_per_call = "kernels / calls"
avg_ns = "Mean host time"
med_ns = "Median host time"
min_ns = "Shortest host time"
max_ns = "Longest host time"
stddev_ns = "Sample standard deviation of the host times; NULL for a single range"

[notes]
open = """
SELECT CASE count(*) WHEN 1 THEN '1 range was' ELSE count(*) || ' ranges were' END
    || ' still open when the capture ended: counted, but without a host time'
FROM nvtx_ranges WHERE end_ns IS NULL HAVING count(*) > 0"""
outside = """
SELECT round(100 - 100.0 * inside_ns / total_ns, 1) || ' % of GPU time was launched outside all push/pop ranges, or by calls that the trace does not have'
FROM (SELECT sum(own_gpu_ns) AS inside_ns FROM answer WHERE style = 'push/pop') CROSS JOIN (SELECT sum(duration_ns) AS total_ns FROM gpu_ops)
WHERE inside_ns < 0.99 * total_ns"""
graphs = """
SELECT 'CUDA graphs ran as a whole ' || count(*) || ' times: gpu_ns includes them, but their kernels are not counted; capture with --cuda-graph-trace=node to see them'
FROM graph_launches HAVING count(*) > 0"""
*/
-- Each thread's time is cut wherever a range opens or closes. A piece lies wholly inside or wholly outside of every range:
-- work is looked up once, by piece, and each range adds up its pieces.
WITH ranges AS MATERIALIZED (
    -- Of the ranges around a piece, the innermost has the highest range_id.
    SELECT
        *,
        row_number() OVER (ORDER BY start_ns, coalesce(end_ns, 9223372036854775807) DESC, name) AS range_id,
        dense_rank() OVER (ORDER BY name, style) AS group_id
    FROM (
        SELECT
            CASE WHEN domain = '' THEN name ELSE domain || ':' || name END AS name,
            style, process_id << 24 | thread_id AS thread, start_ns, end_ns
        FROM nvtx_ranges
        WHERE $by = 'name' OR style = 'start/end'
        UNION ALL
        SELECT path, 'push/pop', process_id << 24 | thread_id, start_ns, end_ns
        FROM nvtx_nesting
        WHERE $by = 'path'
    )
),
pieces AS MATERIALIZED (
    SELECT
        row_number() OVER (ORDER BY thread, start_ns) AS piece_id,
        thread,
        start_ns,
        lead(start_ns) OVER (PARTITION BY thread ORDER BY start_ns) - start_ns AS host_ns
    FROM (SELECT thread, start_ns FROM ranges UNION SELECT thread, end_ns FROM ranges WHERE end_ns IS NOT NULL)
),
inside AS MATERIALIZED (
    SELECT r.range_id, r.group_id, r.style, unnest(range(o.piece_id, coalesce(c.piece_id, l.piece_id + 1))) AS piece_id
    FROM ranges AS r
    JOIN pieces AS o ON o.thread = r.thread AND o.start_ns = r.start_ns
    LEFT JOIN pieces AS c ON c.thread = r.thread AND c.start_ns = r.end_ns
    JOIN (SELECT thread, max(piece_id) AS piece_id FROM pieces GROUP BY thread) AS l ON l.thread = r.thread
),
launched AS (
    SELECT o.start_ns, o.end_ns, o.is_kernel, a.thread, a.start_ns AS api_start_ns
    FROM (SELECT start_ns, end_ns, kind = 'kernel' AS is_kernel, process_id, correlation_id FROM gpu_ops) AS o
    JOIN (
        SELECT process_id << 24 | thread_id AS thread, start_ns, process_id, correlation_id
        FROM api_calls
        WHERE call_group IN ('launch', 'graph launch', 'copy', 'memset')
    ) AS a ON a.process_id = o.process_id AND a.correlation_id = o.correlation_id
),
work AS MATERIALIZED (
    SELECT
        p.piece_id,
        sum(l.end_ns - l.start_ns) AS gpu_ns,
        count(*) FILTER (WHERE l.is_kernel) AS kernels,
        min(l.start_ns) AS first_ns,
        max(l.end_ns) AS last_ns
    FROM launched AS l
    ASOF JOIN pieces AS p ON p.thread = l.thread AND p.start_ns <= l.api_start_ns
    GROUP BY p.piece_id
),
hosts AS (
    SELECT
        group_id,
        name,
        style,
        count(*) AS calls,
        sum(end_ns - start_ns)::BIGINT AS host_ns,
        avg(end_ns - start_ns) AS avg_ns,
        median(end_ns - start_ns) AS med_ns,
        min(end_ns - start_ns) AS min_ns,
        max(end_ns - start_ns) AS max_ns,
        stddev_samp(end_ns - start_ns) AS stddev_ns
    FROM ranges
    GROUP BY ALL
),
own AS (
    SELECT
        r.group_id,
        sum(p.host_ns) FILTER (WHERE r.end_ns IS NOT NULL)::BIGINT AS host_ns,
        sum(w.gpu_ns)::BIGINT AS gpu_ns
    FROM (SELECT max(range_id) AS range_id, piece_id FROM inside WHERE style = 'push/pop' GROUP BY piece_id) AS i
    JOIN ranges AS r ON r.range_id = i.range_id
    JOIN pieces AS p ON p.piece_id = i.piece_id
    LEFT JOIN work AS w ON w.piece_id = i.piece_id
    GROUP BY r.group_id
),
-- A range may contain another of its own name: what is in both counts once.
gpus AS (
    SELECT group_id, sum(gpu_ns)::BIGINT AS gpu_ns, sum(kernels)::BIGINT AS kernels
    FROM (SELECT DISTINCT group_id, piece_id FROM inside) JOIN work USING (piece_id)
    GROUP BY group_id
),
projections AS (
    SELECT group_id, sum(projected_ns)::BIGINT AS projected_ns
    FROM (
        SELECT group_id, max(last_ns) - min(first_ns) AS projected_ns
        FROM inside JOIN work USING (piece_id)
        GROUP BY range_id, group_id
    )
    GROUP BY group_id
)
SELECT
    h.name,
    h.style,
    h.calls,
    h.host_ns,
    100.0 * h.host_ns / wall.duration_ns AS wall_pct,
    CASE WHEN h.style = 'push/pop' AND h.host_ns IS NOT NULL THEN coalesce(own.host_ns, 0) END AS own_host_ns,
    coalesce(g.gpu_ns, 0) AS gpu_ns,
    100.0 * coalesce(g.gpu_ns, 0) / wall.duration_ns AS gpu_wall_pct,
    CASE WHEN h.style = 'push/pop' THEN coalesce(own.gpu_ns, 0) END AS own_gpu_ns,
    coalesce(j.projected_ns, 0) AS projected_ns,
    coalesce(g.kernels, 0) AS kernels,
    coalesce(g.kernels, 0) / h.calls AS kernels_per_call,
    h.avg_ns,
    h.med_ns,
    h.min_ns,
    h.max_ns,
    h.stddev_ns
FROM hosts AS h
CROSS JOIN (SELECT sum(duration_ns) AS duration_ns FROM wall) AS wall
LEFT JOIN own USING (group_id)
LEFT JOIN gpus AS g USING (group_id)
LEFT JOIN projections AS j USING (group_id)
ORDER BY h.host_ns DESC NULLS LAST, gpu_ns DESC, h.name, h.style
