/*
title = "The critical path of a step"
topic = "steps"
place = 10
question = "Which parts of a step would shorten it if they were faster, and by how much?"
examples = ["", "--step-range train_step"]
main = ["path_pct", "path_ns", "saved_ns", "kind", "name", "nvtx_path", "takes_over"]
details = ["half_saved_ns", "total_ns"]
description = """
Walks back from the first GPU operation of a step to that of the previous step, always along what was waited for
last: an operation waits for its launch call or for the previous operation on its stream; the host waits for its own
work or, in calls that wait, for operations. Everything on this path adds up to the step time; the rest is hidden
behind it. The steps are then replayed without each part of the path: saved_ns is what that saves until a parallel
operation becomes the bottleneck, which takes_over names. The replay covers some consecutive steady steps (see
steps), with one host thread and streams that run in order; what an operation waits for on another stream is
inferred from its start. There is no answer where calls of several threads overlap, or where the replayed steps do
not take as long as recorded."""
reading = """
Start with the first rows that have a saved_ns; a kernel with a large total_ns and a small path_ns is not worth
making faster, and neither is host time hidden behind the GPU. saved_ns much smaller than path_ns: work on what
takes over as well. Savings of two rows do not add up. All figures are of the run under nsys, which makes
calls longer and leaves the GPU's times as they are; classify and per-token say how long a step takes without it."""
empty = """
There is no critical path: it cannot be determined, as a note says, or no consecutive steady steps that launch work were
found; name an NVTX range with --step-range"""

[shares]
path_pct = "the step"

[columns]
kind = """\
CPU work, API call, launch latency, kernel, copy, memset, graph, communication, between operations, return of waits"""
name = "The call, the kernel or the copy; NULL for the others"
nvtx_path = "For CPU work, the NVTX ranges around it"
path_ns = "Time on the critical path, per step"
path_pct = "Share of the step time"
saved_ns = """\
How much shorter the step would be without it; NULL for communication, which also depends on other ranks, and where \
it is small"""
takes_over = "What the critical path then runs through instead"
half_saved_ns = "How much shorter the step would be if it took half the time"
total_ns = "Time per step, whether on the critical path or not; NULL for delays"

[notes]
run.text = [[
    "the critical path cannot be determined: {reason}",
    "Critical path of steps {first_step_id}–{last_step_id}, {measured_ns} each (replay: {played_ns})",
]]
run.query = """
SELECT reason, first_step AS first_step_id, first_step + steps - 1 AS last_step_id, measured_ns, played_ns
FROM critical_path_run"""

contexts.text = """
while process {process_id} made its first CUDA call, {name} of {call_ns}, {overlap_ns} of these steps passed: where that
creates a context on the same GPU, an operation may start hundreds of microseconds after its launch call, and launch
latency is partly such waits"""
contexts.query = """
WITH steps_of_path AS (
    SELECT s.process_id, min(s.host_start_ns) AS start_ns, max(s.end_ns) AS end_ns
    FROM steps AS s JOIN critical_path_run AS r ON s.step BETWEEN r.first_step AND r.first_step + r.steps - 1
    WHERE EXISTS (FROM answer WHERE kind = 'launch latency')
    GROUP BY s.process_id
),
-- What runs before a context exists.
first_calls AS (
    SELECT process_id, min_by(name, start_ns) AS name, min(start_ns) AS start_ns, min_by(end_ns, start_ns) AS end_ns
    FROM outer_api_calls WHERE regexp_matches(name, '^cuda|^cu(CtxCreate|DevicePrimaryCtxRetain)')
    GROUP BY process_id
)
SELECT
    c.process_id, c.name, c.end_ns - c.start_ns AS call_ns,
    least(c.end_ns, s.end_ns) - greatest(c.start_ns, s.start_ns) AS overlap_ns
FROM first_calls AS c JOIN steps_of_path AS s ON c.process_id <> s.process_id
WHERE overlap_ns > 0 AND call_ns >= 20000000 AND NOT regexp_matches(name, 'Synchronize|Memcpy|Launch')
ORDER BY overlap_ns DESC, c.process_id LIMIT 1"""
*/
SELECT
    kind, name, nvtx_path, path_ns, 100 * path_ns / (SELECT sum(path_ns) FROM critical_path) AS path_pct, saved_ns,
    takes_over, half_saved_ns, total_ns
FROM critical_path
ORDER BY path_ns DESC, kind, name, nvtx_path
