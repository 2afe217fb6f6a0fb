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
time by cause, so that the shares of a GPU add up to 100%. A gap is attributed to the operation that ends it. If
that operation's launch call began before the gap, the operation was launched in time and waited on the GPU:
dependency; unless that call is a copy to the host into pageable memory that was still in progress: blocked.
Otherwise the host was late, and each nanosecond of the gap is attributed to what the launching thread did then, in
this order of precedence: profiler (the profiler blocked the thread), blocked (in a sync call or a blocking copy; a
copy into pageable host memory blocks even if its name says Async), allocation (in an allocation or a free), starved
(everything else: CPU work outside of CUDA calls, MPI calls, other API calls, the launch call itself, and the time
from its return to the start on the GPU; also managed memory, until pages of unified memory were moved because the host
touched them). Time before the first operation and after the last one of a GPU is edge. A scope cuts all of this to
its own time. diagnose, classify and per-token group these causes by what removes them: starved and launch calls in
progress are launch, except the starved time that a wait before it caused, which is sync (or copy); MPI calls after a
wait are never caused by it."""
reading = """
starved: launch-bound. CPU work is the program's own (Python, sampling): move it off the launching thread, or capture
the step in a CUDA graph, which also removes launch calls and most launch latency; or fuse kernels. blocked: the
host waited for the GPU before it launched more work: see syncs. allocation: use a memory pool, see mallocs.
dependency: the next node of a graph, another stream, an event: see streams and gaps. profiler: not caused by the
program. Much edge: the capture includes loading and warm-up; narrow it with --nvtx or --from and --to. All times are
of the run under nsys, which makes launches slower; classify says what is left of them without it."""
empty = "Nothing that ran on a GPU is recorded in this scope"
advice = "if the program did use one, capture with: nsys profile -t cuda"

[columns]
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"
cause = """\
busy; or why the GPU was idle: starved, blocked, allocation, dependency, profiler, edge, or unknown where the trace \
does not have the launch call"""
host = "What the host did in that time, or what the operation waited for"
time_ns = "Time"
wall_pct = "Share of the wall time; the shares of a GPU add up to 100"

[notes.unknown]
text = "for {wall_pct} of the wall time, the launch call that ended the gap is not in the trace"
query = """
SELECT sum(wall_pct) AS wall_pct
FROM answer
WHERE cause = 'unknown' AND NOT EXISTS (FROM _unrecorded WHERE what = 'calls')
HAVING sum(wall_pct) >= 0.05"""

[notes.video]
use = "video"

[notes.graphs]
use = "idle_in_graphs"

[agent]
rows = 8
columns = ["gpu_id", "cause", "host", "time_ns", "wall_pct"]

[ranks]
by = ["cause", "host"]
spread = "time_ns"
mean = ["time_ns", "wall_pct"]
*/
WITH times_by_cause AS (
    SELECT gpu_id, 'busy' AS cause, NULL AS host, busy_ns AS time_ns FROM used_gpus
    UNION ALL
    SELECT gpu_id, cause, host, idle_ns FROM gpu_idle
),
wall_total AS (
    SELECT sum(duration_ns) AS wall_ns FROM wall
)
SELECT p.gpu_id, p.cause, p.host, p.time_ns, 100.0 * p.time_ns / w.wall_ns AS wall_pct
FROM times_by_cause AS p, wall_total AS w
WHERE w.wall_ns > 0
ORDER BY p.gpu_id, p.cause <> 'busy', sum(p.time_ns) OVER (PARTITION BY p.gpu_id, p.cause) DESC, p.cause,
    p.time_ns DESC, p.host
