/*
title = "API calls of one step"
topic = "steps"
place = 7
question = "Which CUDA API calls does one step make, and what do they wait for?"
examples = ["", "--limit 0"]
page = false
main = ["calls", "avg_ns", "max_ns", "time_ns", "name", "waits_for", "copy_bytes"]
details = ["call_group", "threads"]
description = """
Counts the API calls of the process that begin in a steady step (see steps; in the whole scope where no steps were
found) per step: per token where --tokens says how many there are. Calls inside other calls are left out. A call that
waits for the GPU has a row for each kind of copy that it completes."""
reading = """
Calls that wait for a D2H copy of a few bytes read a value back. Allocations, frees and module loads in every step do
not belong there. Launch calls with a long avg_ns wait for a full queue, or compile."""
empty = "No CUDA API call is recorded in this scope"

[columns]
name = "The function, without its version suffix (_v7000, _ptsz)"
call_group = """\
What the calls are for: launch, graph launch, sync, copy, memset, alloc, free, graph, event, module, other"""
calls = "Calls per step"
avg_ns = "Mean duration"
max_ns = "Longest"
time_ns = "Sum of the durations per step"
waits_for = """\
D2H copy, H2D copy …: the copy that the call waits for; GPU: it waits for other work; NULL if it does not wait"""
copy_bytes = "Mean bytes of these copies"
max_copy_bytes = "Bytes of the largest of them"
threads = "Threads that made the calls"

[notes]
whole.use = "whole_scope"
*/
WITH step_count AS (
    SELECT count(*) * any_value(tokens) AS units FROM _steady_windows
),
calls AS NOT MATERIALIZED (
    SELECT name, call_group, duration_ns, process_id, thread_id, start_ns
    FROM outer_api_calls
    WHERE process_id = coalesce((SELECT any_value(process_id) FROM _steady_windows), process_id)
),
windows AS (
    SELECT host_start_ns AS start_ns, host_end_ns AS end_ns FROM _steady_windows
),
waiting_calls AS (
    SELECT
        process_id, thread_id, call_start_ns AS start_ns, coalesce(copy_kind || ' copy', 'GPU') AS waits_for, copy_bytes
    FROM waits
)
SELECT
    coalesce(c.name, '(no name)') AS name,
    c.call_group,
    count(*) / any_value(s.units) AS calls,
    avg(c.duration_ns) AS avg_ns,
    max(c.duration_ns) AS max_ns,
    sum(c.duration_ns)::BIGINT / any_value(s.units) AS time_ns,
    w.waits_for,
    avg(w.copy_bytes) AS copy_bytes,
    max(w.copy_bytes) AS max_copy_bytes,
    count(DISTINCT (c.process_id, c.thread_id)) AS threads
FROM begun_in('calls', 'windows') AS c
CROSS JOIN step_count AS s
LEFT JOIN waiting_calls AS w USING (process_id, thread_id, start_ns)
GROUP BY c.name, c.call_group, w.waits_for
ORDER BY time_ns DESC, calls DESC, name, waits_for
