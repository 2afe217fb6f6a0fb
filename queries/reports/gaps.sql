/*
title = "Longest GPU idle gaps"
topic = "idle"
place = 3
in_help = true
question = "When is the GPU idle, and what was the host doing?"
examples = ["", "--step 5 --min-gap 20us"]
aliases = ["gpu_gaps"]
main = ["duration_ns", "start_ns", "after_name", "nvtx_path", "host", "cause", "wall_pct", "gpu_id"]
details = ["idle_pct", "host_ns", "process_id", "thread_id", "end_ns", "gaps"]
description = """
A gap is the time on one GPU from the end of all operations so far (kernels, copies, memsets, whole graphs, on any
stream and of any process) to the start of the next. Gaps and busy time add up to the time from the first operation to
the last; the wall time before and after is not a gap. A scope cuts gaps to its own time; time in which the GPU worked
for something outside the scope is not a gap. Without --min-gap, the 1,000 longest gaps are listed. host is what took
most of the gap on the thread that launched the operation after it, up to the end of that launch call: an API or MPI
call by name (its calls summed), an operating system call (-t osrt), or CPU work outside all of these. It is 'launch
latency' if most of the gap came after the launch call had returned; 'launched before the gap' if the call had
returned before the gap began: the host was not late, and the operation waited on the GPU (for another stream, or for
the next node of its graph); with several GPUs 'stream wait' if its stream waited for an event, and 'staged copy' if
it is a copy between GPUs through the host; 'launch call in progress' if the call had begun before the gap and not
returned; 'managed memory' if pages of unified memory were moved next, which no call requests: the host touched them;
and 'profiler: …' if the profiler itself blocked the thread for half of the gap. With --group-by caller, a row is all
gaps before operations that one caller launched while the host did the same thing; columns in which they differ are
empty. gap-places adds up gaps by operation and NVTX range."""
reading = """
CPU work: the program does something else before it launches (sampling, tokenizing, Python): move it off the
launching thread, or use a CUDA graph. sync: the host waited and launched nothing meanwhile, see syncs. alloc or
free: use a memory pool, see mallocs. launch: launch-bound, see gap-sizes and top. launched before the gap: a
dependency between streams or graph nodes. module: loading code at first use, so warm up before measuring. profiler:
not caused by the program."""
empty = "No gaps: fewer than two GPU operations in this scope, or no gap as long as --min-gap"

[params.min_gap_ns]
type = "integer"
help = "List all gaps at least this long, such as 5us; by default the 1,000 longest"

[params.group_by]
default = "gap"
choices = ["gap", "caller", "stack"]
help = "What one row stands for: the gap, or all gaps with one host and one after_name, which is then"

[columns]
start_ns = "When the GPU became idle; for several gaps, the first time"
duration_ns = "GPU idle time of the gap; for several gaps, the sum"
wall_pct = "Share of the wall time"
idle_pct = "Share of the idle time of all gaps in scope"
cause = """\
What the cause of most of the gap is called in idle: launch, sync, copy, allocation, dependency, profiler or unknown; \
of the CPU work after a wait, idle attributes a part to the wait"""
host = "What the host did for most of the gap; NULL when the trace does not have the launch call"
host_ns = "Time of the gap that host took"
before_name = "The operation before the gap"
after_name = "The operation after the gap, or what --group-by selects"
nvtx_path = """\
The NVTX ranges of that thread that hold most of the gap, or the launch call if that was before the gap; NULL \
outside all ranges"""
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"
process_id = "Process that launched the operation"
thread_id = "Thread that launched it"
end_ns = "When the next operation started; for several gaps, the last time"
gaps = "Number of gaps in the row"

[notes]
listed.text = """
<{?is_cut}Showing the 1,000 longest gaps. ><Gaps shorter than {shortest_ns} add ><{?is_grouped}Shorter gaps add
>{rest_ns} ({rest_pct}); use --min-gap or gap-sizes."""
listed.query = """
SELECT
    $min_gap_ns IS NULL AS is_cut, $group_by <> 'gap' AS is_grouped,
    CASE $group_by WHEN 'gap' THEN min(duration_ns) END AS shortest_ns,
    max(duration_ns * 100 / idle_pct) - sum(duration_ns) AS rest_ns, 100 - sum(idle_pct) AS rest_pct
FROM answer WHERE idle_pct > 0 HAVING sum(idle_pct) < 99.95"""

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
            CASE WHEN $group_by = 'gap' THEN g.after_name ELSE coalesce(p.place, '(no backtrace)') END AS after_name
        ),
        CASE WHEN $group_by = 'gap' THEN g.gap_id END AS row_id
    FROM _explained_gaps AS g
    LEFT JOIN places_by_call AS p ON p.process_id = g.process_id AND p.correlation_id = g.correlation_id
    WHERE g.duration_ns >= coalesce($min_gap_ns, 0)
)
SELECT
    min(start_ns) AS start_ns,
    sum(duration_ns)::BIGINT AS duration_ns,
    100.0 * sum(duration_ns)::BIGINT / (SELECT sum(duration_ns) FROM wall) AS wall_pct,
    sum(idle_pct) AS idle_pct,
    cause,
    host,
    sum(host_ns)::BIGINT AS host_ns,
    common_value(before_name) AS before_name,
    after_name,
    common_value(nvtx_path) AS nvtx_path,
    common_value(gpu_id) AS gpu_id,
    common_value(process_id) AS process_id,
    common_value(thread_id) AS thread_id,
    max(end_ns) AS end_ns,
    count(*) AS gaps
FROM grouped_gaps
GROUP BY row_id, cause, host, after_name
ORDER BY duration_ns DESC, min(gap_id)
