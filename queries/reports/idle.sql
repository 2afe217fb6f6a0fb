/*
title = "GPU time: busy, and idle by cause"
topic = "idle"
place = 1
in_help = true
question = "Where does the wall time of each GPU go: busy, or idle for which cause? Adds up to 100%."
examples = ["", "--nvtx decode_step"]
main = ["gpu_id", "cause", "host", "time_ns", "wall_pct"]
description = """
Splits the wall time of each GPU into busy time (the union of kernels, copies, memsets and whole graphs) and idle
time by cause, so that the shares of a GPU add up to 100%. The causes are those of diagnose, classify and per-token,
here for the whole scope. A gap is attributed to the operation that ends it. If that operation's launch call had
returned before the gap, the operation was launched in time and waited on the GPU: dependency. If the call was still
in progress, the cause is launch. Otherwise the host was late, and each nanosecond of the gap is attributed to what
the launching thread did then, in this order of precedence: profiler (the profiler blocked the thread), sync (in a
sync call or a copy to the host that blocks, as one into pageable host memory does even if its name says Async), copy
(in another blocking copy), allocation (in an allocation or a free), launch (everything else: CPU work outside of CUDA
calls, MPI calls, other API calls, the launch call itself, and the time from its return to the start on the GPU; also
managed memory, until pages of unified memory were moved because the host touched them). The time of late launches
after a wait belongs to the wait, sync or copy, up to the time that the wait blocked the host: without the wait, the
host would have been that far ahead. MPI calls after a wait are never caused by it, nor is an operation that starts
100 µs or more after its launch call has returned. Time before the first operation
and after the last one of a GPU is start-up and end. A scope cuts all of this to its own time."""
reading = """
launch: the CPU launches too slowly. CPU work is the program's own (Python, sampling): move it off the launching
thread, or capture the step in a CUDA graph, which also removes launch calls and most launch latency; or fuse kernels.
sync: the host waited for the GPU before it launched more work, or read its data (D2H copy): see syncs. copy: pin
memory, see copies. allocation: use a memory pool, see mallocs. dependency: the next node of a graph, another stream,
an event: see streams and gaps. profiler: not caused by the program. Much start-up and end: the capture includes
loading and warm-up; narrow it with --nvtx or --from and --to. All times are of the run under nsys, which makes
launches slower; classify says what is left of them without it."""
empty = "Nothing that ran on a GPU is recorded in this scope"
advice = "if the program did use one, capture with: nsys profile -t cuda"

[columns]
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"
cause = """\
busy; or why the GPU was idle: launch, sync, copy, allocation, dependency, profiler, start-up and end, or unknown \
where the trace does not have the launch call"""
host = "What the host did in that time, or what it or the operation waited for"
time_ns = "Time"
wall_pct = "Share of the wall time; the shares of a GPU add up to 100"

[notes]
unknown.text = "for {wall_pct} of the wall time, the launch call that ended the gap is not in the trace"
unknown.query = """
SELECT sum(wall_pct) AS wall_pct
FROM answer
WHERE cause = 'unknown' AND NOT EXISTS (FROM _unrecorded WHERE what = 'calls')
HAVING sum(wall_pct) >= 0.05"""

video.use = "video"
graphs.use = "idle_in_graphs"

[ranks]
by = ["cause", "host"]
spread = "time_ns"
mean = ["time_ns", "wall_pct"]
*/
WITH times_by_cause AS (
    SELECT gpu_id, 'busy' AS cause, NULL AS host, busy_ns AS time_ns FROM used_gpus
    UNION ALL
    SELECT gpu_id, cause, host, sum(idle_ns)::BIGINT
    FROM (
        SELECT gpu_id, cause, CASE host WHEN 'sync calls' THEN 'wait' ELSE host END AS host, idle_ns FROM gpu_idle
        UNION ALL
        SELECT gpu_id, cause, CASE host WHEN 'sync calls' THEN 'wait' ELSE host END, -idle_ns FROM _charged_parts
        UNION ALL
        SELECT gpu_id, part, part_host, idle_ns FROM _charged_parts
    )
    GROUP BY ALL
    HAVING sum(idle_ns) > 0
),
wall_total AS (
    SELECT sum(duration_ns) AS wall_ns FROM wall
)
SELECT p.gpu_id, p.cause, p.host, p.time_ns, 100.0 * p.time_ns / w.wall_ns AS wall_pct
FROM times_by_cause AS p, wall_total AS w
WHERE w.wall_ns > 0
ORDER BY p.gpu_id, p.cause <> 'busy', sum(p.time_ns) OVER (PARTITION BY p.gpu_id, p.cause) DESC, p.cause,
    p.time_ns DESC, p.host
