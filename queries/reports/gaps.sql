/*
title = "The longest times in which the GPU was idle"
topic = "idle"
place = 3
question = "When is the GPU idle, and what was the host doing?"
aliases = ["gpu_gaps"]
main = ["start_ns", "duration_ns", "wall_pct", "cause", "host", "after_name", "nvtx_path"]
details = ["idle_pct", "host_ns", "gpu_id", "process_id", "thread_id", "end_ns"]
description = """
A gap is the time on one GPU from the end of all operations so far (kernels, copies, memsets, whole graphs, on any stream
and of any process) to the start of the next. The gaps and the busy time add up to the time from the first operation to
the last; what of the wall is before and after is no gap. A scope cuts gaps to its own time; what the GPU did for others
in that time is no gap. Without --min-gap the 1,000 longest gaps are listed. host is what took most of the gap on the
thread that launched the operation after it, up to the end of that launch call: an API call by its name (the sum of its
calls), a call of the operating system (captured with -t osrt), or CPU work outside all of these. It is 'launch latency'
if most of the gap came after the launch call had returned; 'launched before the gap' if the call had returned before the
gap began: then the host was not late, the operation waited on the GPU (for another stream, or for the next node of its
graph); 'launch call under way' if the call had begun before the gap and not returned; 'managed memory' if pages of unified memory were moved next, which no call asks for: the host touched them; and 'profiler: …' if the profiler
itself held the thread up for half of the gap."""
reading = """
CPU work: the program does something else before it launches (sampling, tokenising, Python): do it later, on another
thread, or with a CUDA graph. sync: the host waited and launched nothing meanwhile, see syncs. alloc or free: use a memory
pool, see mallocs. launch: launch-bound, see gap-sizes and top. launched before the gap: a dependency between streams or
graph nodes. module: loading code at first use, so warm up before measuring. profiler: not the program's doing."""
empty = "No gaps: fewer than two GPU operations in this scope, or none as long as --min-gap"

[params.min_gap_ns]
type = "integer"
help = "List all gaps at least this long, such as 5us; by default the 1,000 longest"

[columns]
start_ns = "When the GPU became idle"
duration_ns = "How long it was idle"
wall_pct = "Share of the wall"
idle_pct = "Share of the idle time of all gaps in scope"
cause = "What most of the gap is owed to, in the words of idle: starved, blocked, allocation, dependency, profiler, unknown"
host = "What the host did for most of the gap; NULL when the trace does not have the launch call"
host_ns = "How much of the gap that was"
before_name = "The operation before the gap"
after_name = "The operation after the gap"
nvtx_path = "The NVTX ranges of that thread that hold most of the gap, or of the launch call if that was before; NULL outside all"
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"
process_id = "Process that launched the operation"
thread_id = "Thread that launched it"
end_ns = "When the next operation started"

[notes]
listed = """
SELECT CASE WHEN $min_gap_ns IS NULL THEN 'the 1,000 longest gaps are listed; ' ELSE '' END
    || 'gaps shorter than ' || round(min(duration_ns) / 1e3, 3) || ' µs hold another '
    || round(max(duration_ns * 100 / idle_pct) / 1e6 - sum(duration_ns) / 1e6, 3) || ' ms of idle time ('
    || round(100 - sum(idle_pct), 1) || ' %): list more with --min-gap, or count them all with gap-sizes'
FROM answer WHERE idle_pct > 0 HAVING sum(idle_pct) < 99.95"""
graphs = "SELECT of_idle FROM _whole_graphs"
*/
SELECT
    start_ns, duration_ns, 100.0 * duration_ns / (SELECT sum(duration_ns) FROM wall) AS wall_pct, idle_pct, cause, host, host_ns,
    before_name, after_name, nvtx_path, gpu_id, process_id, thread_id, end_ns
FROM _explained_gaps
WHERE duration_ns >= coalesce($min_gap_ns, 0)
ORDER BY gap_id
