/*
title = "Kernels by GPU time"
topic = "kernels"
place = 1
in_help = true
question = "Which kernels take the time? By name, family, provenance, device, stream or NVTX range."
examples = ["", "--steady --group-by family"]
aliases = ["cuda_gpu_kern_sum", "kernels"]
main = ["kernel_time_pct", "total_ns", "calls", "avg_ns", "family", "name", "p95_ns", "max_ns"]
description = """
Adds up the GPU time of every kernel execution by name. kernel_time_pct is the share of all kernel time in scope,
wall_pct the share of the wall time. That may be more than 100%: kernels overlap on several streams, and a scope
counts a kernel that begins (--from, --to) or is launched (--nvtx) in it with its full duration; streams cuts to the
scope. Durations are end - start as CUPTI measured them on the GPU."""
reading = """
Look at the top three by time and the top by calls. Many calls with a moderate average: a per-layer kernel, so a
candidate for fusion. Few calls with a high average: optimize the kernel itself. A small wall_pct in all rows: the
GPU waits, see gaps."""
empty = "No kernels are recorded in this scope"
advice = "if the program did use the GPU, capture with: nsys profile -t cuda"

[params.group_by]
default = "full"
choices = ["full", "short", "mangled", "family", "provenance", "device", "stream", "nvtx"]
help = """\
What one row stands for: the full, short or mangled name, the kernel's family or provenance, the device, the stream, \
or the innermost NVTX range that launched it"""

[columns]
name = "The kernel, or what the kernels were grouped by"
calls = "Executions on the GPU"
total_ns = "Sum of their durations"
avg_ns = "Mean duration"
med_ns = "Median duration"
min_ns = "Shortest"
max_ns = "Longest"
stddev_ns = "Sample standard deviation of the durations; NULL for a single call"
p95_ns = "95th percentile of the durations"
p99_ns = "99th percentile of the durations"
kernel_time_pct = "Share of all kernel time in scope"
wall_pct = "total_ns as a share of the wall time; not cut to the scope"
family = "What the kernel does, by its name"
provenance = "Where the kernel comes from, by its name"

[notes]
waiting.use = "waiting_kernels"

graphs.text = """
CUDA graphs ran as a whole {graphs:time} ({graph_pct} of kernel and graph time): their kernels are not in this table;
capture with --cuda-graph-trace=node to see them"""
graphs.query = """
SELECT
    count(*) AS graphs,
    100 * sum(duration_ns)::DOUBLE
        / nullif(sum(duration_ns) + coalesce((SELECT sum(total_ns) FROM answer), 0), 0) AS graph_pct
FROM graph_launches HAVING count(*) > 0"""

video.use = "video_engines"
deep.use = "deep_paths"

[ranks]
by = ["name", "family", "provenance"]
spread = "total_ns"
sum = ["calls", "total_ns"]
mean = ["kernel_time_pct", "wall_pct"]
min = ["min_ns"]
max = ["max_ns"]
ratio = { avg_ns = ["total_ns", "calls"] }
*/
WITH grouped_kernels AS (
    SELECT name_id, NULL AS label, duration_ns FROM kernel_events WHERE $group_by = 'full'
    UNION ALL
    SELECT short_name_id, NULL, duration_ns FROM kernel_events WHERE $group_by = 'short'
    UNION ALL
    SELECT mangled_name_id, NULL, duration_ns FROM kernel_events WHERE $group_by = 'mangled'
    UNION ALL
    SELECT NULL, coalesce(n.family, 'other'), k.duration_ns
    FROM kernel_events AS k
    LEFT JOIN kernel_names AS n USING (name_id)
    WHERE $group_by = 'family'
    UNION ALL
    SELECT NULL, coalesce(n.provenance, 'hand-written'), k.duration_ns
    FROM kernel_events AS k
    LEFT JOIN kernel_names AS n USING (name_id)
    WHERE $group_by = 'provenance'
    UNION ALL
    SELECT NULL, 'process ' || process_id || ' device ' || device_id, duration_ns FROM kernel_events
    WHERE $group_by = 'device'
    UNION ALL
    SELECT NULL, 'process ' || process_id || ' device ' || device_id || ' stream ' || stream_id, duration_ns
    FROM kernel_events
    WHERE $group_by = 'stream'
    UNION ALL
    SELECT NULL, coalesce(nvtx_path, '(outside NVTX ranges)') || coalesce(' (captured in ' || captured_path || ')', ''),
        duration_ns
    FROM kernels_in_nvtx
    WHERE $group_by = 'nvtx'
),
group_totals AS (
    SELECT
        name_id,
        label,
        count(*) AS calls,
        sum(duration_ns)::BIGINT AS total_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        stddev_samp(duration_ns) AS stddev_ns,
        quantile_cont(duration_ns, [0.5, 0.95, 0.99]) AS quantiles_ns
    FROM grouped_kernels
    GROUP BY ALL
)
SELECT
    coalesce(m.label, nullif(s.name, ''), '(no ' || $group_by || ' name)') AS name,
    m.calls,
    m.total_ns,
    m.total_ns / m.calls AS avg_ns,
    m.quantiles_ns[1] AS med_ns,
    m.min_ns,
    m.max_ns,
    m.stddev_ns,
    m.quantiles_ns[2] AS p95_ns,
    m.quantiles_ns[3] AS p99_ns,
    100.0 * m.total_ns / nullif((SELECT sum(total_ns) FROM group_totals), 0) AS kernel_time_pct,
    100.0 * m.total_ns / (SELECT sum(duration_ns) FROM wall) AS wall_pct,
    CASE WHEN $group_by = 'family' THEN m.label ELSE kernel_family(s.name) END AS family,
    CASE WHEN $group_by = 'provenance' THEN m.label ELSE kernel_provenance(s.name) END AS provenance
FROM group_totals AS m
LEFT JOIN strings AS s USING (name_id)
ORDER BY m.total_ns DESC, name
