/*
title = "GPU idle time by place in the program"
topic = "idle"
place = 3
question = "Where in the program does the GPU stall: before which operation, in which range, after which call?"
examples = ["", "--group-by caller --min-gap 10us"]
main = ["wall_pct", "total_ns", "after_name", "nvtx_path", "host", "gaps", "med_ns"]
details = ["idle_pct", "steps"]
description = """
Groups the gaps of the report gaps by the operation after them, the NVTX ranges that hold most of them (numbers as
#), and what the host did for most of the gap. Without --min-gap, only the 1,000 longest gaps are grouped.
step_count is the number of steady steps (see steps) in which a gap of the group begins."""
reading = """
A place with gaps in nearly all steps is a stall of the loop: host says what to look at there. cu(da)Module or
Library calls: code is loaded at first use, so warm up, or set CUDA_MODULE_LOADING=EAGER. CPU work: the program's
own, in that range. A place with a few long gaps causes outlier steps."""
empty = "No gaps: fewer than two GPU operations in this scope, or no gap as long as --min-gap"

[params.min_gap_ns]
type = "integer"
help = "Group all gaps at least this long, such as 5us; by default the 1,000 longest"

[params.group_by]
default = "operation"
choices = ["operation", "caller", "stack"]
help = "What after_name is: the operation after the gaps"

[columns]
after_name = "The operation after the gaps, or what --group-by selects"
host = "What the host did for most of a gap, as in gaps"
nvtx_path = "The NVTX ranges that hold most of a gap; NULL outside all ranges"
cause = "The cause of most of the gap time, as in idle"
gaps = "How many"
step_count = "Number of steady steps with such a gap; NULL where no steps were found"
steps = "Number of steady steps; NULL where no steps were found"
total_ns = "Sum of the gaps"
wall_pct = "total_ns as a share of the wall time of all GPUs that have gaps"
idle_pct = "total_ns as a share of the idle time of all gaps in scope"
med_ns = "Median gap"
max_ns = "Longest gap"

[notes]
graphs.use = "idle_in_graphs"
*/
WITH places_by_call AS (
    SELECT NULL::BIGINT AS process_id, NULL::BIGINT AS correlation_id, NULL::VARCHAR AS place WHERE false
    UNION ALL
    SELECT process_id, correlation_id, name FROM _gap_callers WHERE $group_by = 'caller'
    UNION ALL
    SELECT process_id, correlation_id, _stack_text(frames, $stack) FROM _gap_callers WHERE $group_by = 'stack'
),
grouped_gaps AS (
    SELECT
        g.* REPLACE (
            fold(nvtx_path) AS nvtx_path,
            CASE
                WHEN $group_by = 'operation' THEN g.after_name ELSE coalesce(p.place, '(no backtrace)')
            END AS after_name
        ),
        CASE WHEN g.start_ns < s.end_ns THEN s.step END AS step
    FROM (FROM _explained_gaps WHERE duration_ns >= coalesce($min_gap_ns, 0)) AS g
    ASOF LEFT JOIN _steady_windows AS s ON s.start_ns <= g.start_ns
    LEFT JOIN places_by_call AS p ON p.process_id = g.process_id AND p.correlation_id = g.correlation_id
),
steady_step_count AS (
    SELECT nullif(count(step), 0) AS steps FROM _steady_windows
)
SELECT
    p.after_name,
    p.host,
    p.nvtx_path,
    p.cause,
    count(*) AS gaps,
    CASE WHEN any_value(c.steps) IS NOT NULL THEN count(DISTINCT p.step) END AS step_count,
    any_value(c.steps) AS steps,
    sum(p.duration_ns)::BIGINT AS total_ns,
    100.0 * sum(p.duration_ns)::BIGINT / (SELECT sum(duration_ns) FROM wall)
        / (SELECT count(DISTINCT gpu_id) FROM grouped_gaps) AS wall_pct,
    sum(p.idle_pct) AS idle_pct,
    median(p.duration_ns) AS med_ns,
    max(p.duration_ns) AS max_ns
FROM grouped_gaps AS p, steady_step_count AS c
GROUP BY p.after_name, p.host, p.nvtx_path, p.cause
ORDER BY total_ns DESC, gaps DESC, p.after_name, p.host, p.nvtx_path, p.cause
