/*
title = "Contexts that share a GPU"
topic = "program"
place = 44
page = false
question = "How long does each process or context hold the GPU, and how often do they take turns?"
examples = ["", "--limit 0"]
main = ["process", "process_id", "gpu_id", "context_id", "running_ns", "running_pct", "turns", "avg_turn_ns"]
details = ["max_turn_ns", "max_absence_ns"]
description = """
Adds up the turns of each context on the GPU. A turn lasts from the context's begin event to its end event. Turns of
compute and graphics contexts count alike; a process outside the profiled program has no name. Kernels of a context run
only during its turns: a kernel that lasts longer than a turn is interrupted, and its duration in the trace includes
the turns of the others. Not read: the events in between (requests by the host, save, restore)."""
reading = """
Several processes with long turns: they share the GPU by time slices. Durations of kernels are stretched then; measure
without the other process, or let them run at the same time with NVIDIA's Multi-Process Service (MPS)."""
empty = """\
No GPU context switches are recorded in this scope; to record them, capture with: nsys profile --gpuctxsw=true"""

[columns]
process = "Name of the process; NULL where not recorded"
process_id = "Operating system's process id; NULL where not recorded"
gpu_id = "The machine's GPU"
context_id = "Number of the context in the table of context switches"
running_ns = "Sum of its turns"
running_pct = "running_ns as a share of the time from the GPU's first recorded turn to its last"
turns = "How many turns"
avg_turn_ns = "Mean length of a turn"
max_turn_ns = "Longest turn"
max_absence_ns = "Longest time between two of its turns"
*/
WITH spans AS (
    SELECT gpu_id, max(end_ns) - min(start_ns) AS span_ns FROM gpu_context_turns GROUP BY gpu_id
),
turns AS (
    SELECT
        *,
        start_ns - lag(end_ns) OVER (PARTITION BY gpu_id, process_id, context_id ORDER BY start_ns) AS absence_ns
    FROM gpu_context_turns
)
SELECT
    p.name AS process, t.process_id, t.gpu_id, t.context_id, sum(t.duration_ns)::BIGINT AS running_ns,
    100.0 * sum(t.duration_ns) / nullif(any_value(s.span_ns), 0) AS running_pct, count(*) AS turns,
    avg(t.duration_ns) AS avg_turn_ns, max(t.duration_ns) AS max_turn_ns, max(t.absence_ns) AS max_absence_ns
FROM turns AS t
JOIN spans AS s USING (gpu_id)
LEFT JOIN (SELECT process_id, min(name) AS name FROM processes GROUP BY process_id) AS p USING (process_id)
GROUP BY ALL
ORDER BY running_ns DESC, t.gpu_id, t.process_id, t.context_id
