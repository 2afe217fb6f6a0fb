/*
title = "What a step waits for, one thing after another"
topic = "steps"
place = 10
question = "What would shorten a step if it were faster, and by how much?"
main = ["kind", "name", "path_ns", "path_pct", "saved_ns", "takes_over", "nvtx_path"]
details = ["half_saved_ns", "total_ns"]
description = """
Goes back from the first GPU operation of a step to that of the step before, always along what was waited for last: an operation waits
for its launch call or for the one before it on its stream, the host for its own work or, in calls that wait, for operations. What lies
on this path adds up to the step; all else is hidden behind it. Then the steps are played again without each part of it: saved_ns is what
that saves, until another path takes over, which takes_over names. These are some steady steps in a row (see steps), played by
the rules of one host thread and of streams that run in order; what an operation waits for on another stream is taken from its start.
There is no answer where calls of several threads overlap, or where the steps played as recorded do not take as long as they did."""
reading = """
The first rows with a saved_ns are worth making faster; a kernel with much total_ns and little path_ns is not, nor is host time hidden
behind the GPU. saved_ns much smaller than path_ns: work on what takes over as well. Savings of two rows do not add up. All of it is of
the profiled run, in which calls take longer than alone."""
empty = "No steady steps in a row were found, or they launch nothing; name an NVTX range with --step-range"

[columns]
kind = "CPU work, API call, launch latency, kernel, copy, memset, graph, communication, between operations, return of waits"
name = "The call, the kernel or the copy; NULL for the others"
nvtx_path = "Of CPU work, the NVTX ranges around it"
path_ns = "Time on the critical path, per step"
path_pct = "Share of the step"
saved_ns = "What the step would be shorter without it; NULL for communication, which is up to other ranks too, and where it is little"
takes_over = "What then has more of the critical path"
half_saved_ns = "What the step would be shorter if it took half of its time"
total_ns = "Its time per step, on the critical path or not; NULL for delays"

[notes]
run = """
SELECT coalesce('nothing can be said of the critical path: ' || reason, 'the critical path of ' || steps || ' steps from step ' || first_step || ' on, of ' || time_text(measured_ns)
    || ' each; played again as recorded they take ' || time_text(played_ns)) FROM critical_path_run"""
[agent]
rows = 6
columns = ["kind", "name", "nvtx_path", "path_ns", "path_pct", "saved_ns", "takes_over"]
*/
SELECT
    kind, name, nvtx_path, path_ns, 100 * path_ns / (SELECT sum(path_ns) FROM critical_path) AS path_pct, saved_ns, takes_over, half_saved_ns, total_ns
FROM critical_path
ORDER BY path_ns DESC, kind, name, nvtx_path
