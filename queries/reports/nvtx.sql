/*
title = "NVTX ranges: host time, and the GPU work launched inside"
topic = "program"
place = 1
in_help = true
question = "How much host and GPU time does each NVTX range take, with and without nested ranges?"
examples = ["", "--by path", "--instances decode_step"]
aliases = ["nvtx_sum", "nvtx-sum", "nvtx_pushpop_sum", "nvtx_startend_sum", "nvtx_gpu_proj_sum"]
main = ["wall_pct", "host_ns", "gpu_idle_during_ns", "calls", "name", "gpu_ns", "own_host_ns", "kernels"]
description = """
Host time is the time from opening to closing a range on its thread, own_host_ns the part of it outside nested
ranges. GPU work belongs to the ranges that are open on the launching thread when its launch call begins, no matter
when it runs: gpu_ns adds up the kernels, copies, memsets and whole graphs launched inside, nested ranges included,
each once per name; own_gpu_ns counts only those launched outside nested ranges. captured_gpu_ns is the work of nodes
of CUDA graphs that were captured inside, whenever they were launched. projected_ns is, for each range,
from the start of its first GPU operation to the end of its last, idle time between them included.
gpu_busy_during_ns and gpu_idle_during_ns are what the GPU does while a range is open, no matter who launched it: they
add up to the time in which ranges of the name are open, where threads of a process overlap once. They are unknown
with --step. A range that was
still open at the end of the capture is counted, with its GPU work; its host time is unknown. start/end ranges do
not nest, so they have no own time; a mark is an instant and has a count only. Names that differ only in their numbers
count as one: step #. Numbers within words stay: conv2d, gemm_fp8."""
reading = """
Start with the ranges that have the most gpu_idle_during_ns: the GPU is idle while they are open, so see idle and gaps
with --nvtx NAME. A range can launch little (gpu_ns) although the GPU is busy during it: the host then waits for work
that other ranges launched, see syncs with --nvtx NAME. Little idle time and a large gpu_ns: the GPU is the limit, see
top with --nvtx NAME. A large own_host_ns of an outer range is work that no range names yet. Hundreds of kernels per
call that take little time are candidates for fusion or a CUDA graph. Work that another thread launches, as
PyTorch's backward pass does, is in that thread's ranges."""
empty = "No NVTX ranges in this scope"
advice = """\
capture with nsys profile -t cuda,nvtx, and mark ranges in the program (torch.cuda.nvtx.range_push, nvtx.annotate, \
nvtxRangePush)"""

details = ["gpu_wall_pct", "med_ns", "min_ns", "max_ns", "stddev_ns"]

[params.by]
default = "name"
choices = ["name", "path"]
help = "What one row stands for: all ranges of a name, or only those at the same place in the nesting"

[params.fold]
default = true
help = "Count ranges whose names differ only in their numbers as one, such as step #"

[params.instances]
type = "text"
report = "nvtx-instances"
help = "List each occurrence of the ranges of this name instead, with the work that it launched"

[columns]
name = "The range's text, after its domain if it has one; or the names from the outermost range down to it, at most 64"
style = "push/pop: nested on one thread; start/end: free; mark: an instant"
calls = "How many ranges or marks"
host_ns = "Sum of their host times"
wall_pct = "host_ns as a share of the wall time; threads and nested ranges of one name may add up to more than 100%"
own_host_ns = "Host time outside nested ranges"
gpu_ns = "Sum of the durations of the GPU operations launched inside"
gpu_wall_pct = "gpu_ns as a share of the wall time; operations that overlap may add up to more than 100%"
own_gpu_ns = "The part of gpu_ns that was launched outside nested ranges"
projected_ns = "From first start to last end of the GPU operations launched inside, summed over the ranges"
gpu_busy_during_ns = """\
Time in which the GPU was busy while a range was open, whoever launched the work; the mean of the GPUs that the \
range's process uses"""
gpu_idle_during_ns = "The rest of that time, in which the GPU was idle"
kernels = "Kernels launched inside, each once"
kernels_per_call = "kernels / calls"
avg_ns = "Mean host time"
med_ns = "Median host time"
min_ns = "Shortest host time"
max_ns = "Longest host time"
stddev_ns = "Sample standard deviation of the host times; NULL for a single range"
captured_gpu_ns = """\
GPU time of the nodes of CUDA graphs that were captured in the range, over all launches; NULL where no capture is \
recorded"""
captured_kernels = "How many kernels ran in these nodes"

[notes]
step.text = """
the GPU also runs work of earlier steps during these ranges, which is not in this scope, so busy and idle times during
them are unknown; for the time window: --from {from} --to {to}"""
step.query = """
SELECT format('{}ms', round(start_ns / 1e6, 3)) AS "from", format('{}ms', round(end_ns / 1e6, 3)) AS "to"
FROM wall, scope
WHERE scope.steps <> 'steady' AND EXISTS (FROM answer)"""

captured.text = """
CUDA graphs: gpu_ns counts a kernel where its graph was launched, captured_gpu_ns where its node was captured"""
captured.query = "SELECT count(*) AS rows FROM answer WHERE captured_kernels > 0 HAVING count(*) > 0"

open.text = "{ranges:range was|ranges were} still open when the capture ended: counted, but without a host time"
open.query = "SELECT count(*) AS ranges FROM nvtx_ranges WHERE end_ns IS NULL HAVING count(*) > 0"

deep.use = "deep_paths"

outside.text = """
{outside_pct} of GPU time was launched outside all push/pop ranges, or by calls that the trace does not have"""
outside.query = """
SELECT 100 - 100 * inside_ns / total_ns AS outside_pct
FROM (SELECT sum(own_gpu_ns) AS inside_ns FROM answer WHERE style = 'push/pop')
CROSS JOIN (SELECT sum(duration_ns)::DOUBLE AS total_ns FROM gpu_ops)
WHERE inside_ns < 0.99 * total_ns"""

graphs.use = "whole_graphs"
graphs.text = """
CUDA graphs ran as a whole {graphs:time}: gpu_ns includes them, but their kernels are not counted; capture with
--cuda-graph-trace=node to see them"""

[ranks]
by = ["name", "style"]
spread = "host_ns"
sum = ["calls", "host_ns", "own_host_ns", "gpu_ns", "own_gpu_ns", "projected_ns", "kernels"]
mean = ["wall_pct", "gpu_wall_pct"]
min = ["min_ns"]
max = ["max_ns"]
ratio = { kernels_per_call = ["kernels", "calls"], avg_ns = ["host_ns", "calls"] }
*/
-- A million ranges have few names. So the ranges have the number of their group, and only groups have a name.
WITH range_texts AS MATERIALIZED (
    SELECT
        path AS text, 'push/pop' AS style, range_id, thread_of(thread_id, process_id) AS thread, start_ns, end_ns
    FROM nvtx_nesting
    WHERE $by = 'path' AND style = 'push/pop'
    UNION ALL
    SELECT
        CASE WHEN domain = '' THEN name ELSE domain || ':' || name END,
        'push/pop', range_id, thread_of(thread_id, process_id), start_ns, end_ns
    FROM _nvtx_stacks
    WHERE $by = 'name'
    UNION ALL
    SELECT
        CASE WHEN domain = '' THEN name ELSE domain || ':' || name END,
        style, NULL, thread_of(thread_id, process_id), start_ns, end_ns
    FROM nvtx_ranges
    WHERE style = 'start/end'
),
groups AS MATERIALIZED (
    SELECT *, dense_rank() OVER (ORDER BY name, style) AS group_id
    FROM (
        SELECT text, style, CASE WHEN $fold THEN fold(text) ELSE text END AS name
        FROM (SELECT DISTINCT text, style FROM range_texts)
    )
),
ranges AS MATERIALIZED (
    SELECT
        g.group_id,
        t.range_id,
        t.thread,
        t.start_ns,
        t.end_ns,
        greatest(
            t.start_ns,
            coalesce(t.end_ns, (SELECT max(greatest(start_ns, coalesce(end_ns, start_ns))) + 1 FROM nvtx_ranges))
        ) AS close_ns
    FROM range_texts AS t JOIN groups AS g USING (text, style)
),
launched_work AS (
    FROM _nvtx_work
),
captured_work AS MATERIALIZED (
    FROM _captured_work
),
-- While the host is in a step, the GPU also runs what earlier steps launched, which is not in the scope of that step.
scope_flags AS (
    SELECT coalesce(steps <> 'steady', false) AS is_single_step FROM scope
),
host_times AS (
    SELECT
        group_id,
        count(*) AS calls,
        sum(duration_ns)::BIGINT AS host_ns,
        avg(duration_ns) AS avg_ns,
        median(duration_ns) AS med_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS stddev_ns
    FROM (SELECT group_id, duration(start_ns, end_ns) AS duration_ns FROM ranges)
    GROUP BY group_id
)
SELECT
    n.name,
    n.style,
    h.calls,
    h.host_ns,
    100.0 * h.host_ns / wall.duration_ns AS wall_pct,
    CASE WHEN n.style = 'push/pop' AND h.host_ns IS NOT NULL THEN coalesce(own.host_ns, 0) END AS own_host_ns,
    coalesce(g.gpu_ns, 0) AS gpu_ns,
    100.0 * coalesce(g.gpu_ns, 0) / wall.duration_ns AS gpu_wall_pct,
    CASE WHEN n.style = 'push/pop' THEN coalesce(own.gpu_ns, 0) END AS own_gpu_ns,
    coalesce(j.projected_ns, 0) AS projected_ns,
    CASE WHEN NOT (SELECT is_single_step FROM scope_flags) THEN d.busy_ns END AS gpu_busy_during_ns,
    CASE WHEN NOT (SELECT is_single_step FROM scope_flags) THEN d.open_ns - d.busy_ns END AS gpu_idle_during_ns,
    coalesce(g.kernels, 0) AS kernels,
    coalesce(g.kernels, 0) / h.calls AS kernels_per_call,
    h.avg_ns,
    h.med_ns,
    h.min_ns,
    h.max_ns,
    h.stddev_ns,
    CASE WHEN EXISTS (FROM captured_work) THEN coalesce(c.gpu_ns, 0) END AS captured_gpu_ns,
    CASE WHEN EXISTS (FROM captured_work) THEN coalesce(c.kernels, 0) END AS captured_kernels
FROM host_times AS h
JOIN (SELECT DISTINCT group_id, name, style FROM groups) AS n USING (group_id)
CROSS JOIN (SELECT sum(duration_ns) AS duration_ns FROM wall) AS wall
LEFT JOIN _own_time('ranges') AS own USING (group_id)
LEFT JOIN _gpu_work_in('ranges', 'launched_work') AS g USING (group_id)
LEFT JOIN _gpu_work_in('ranges', 'captured_work') AS c USING (group_id)
LEFT JOIN _projected_time('ranges') AS j USING (group_id)
LEFT JOIN _busy_during('ranges') AS d USING (group_id)
UNION ALL BY NAME
SELECT CASE WHEN $fold THEN folded_name ELSE name END AS name, 'mark' AS style, sum(calls)::BIGINT AS calls
FROM (
    SELECT name, fold(name) AS folded_name, calls
    FROM (SELECT name, count(*) AS calls FROM nvtx_marks WHERE $by = 'name' GROUP BY name)
)
GROUP BY ALL
ORDER BY host_ns DESC NULLS LAST, gpu_ns DESC NULLS LAST, name, style
