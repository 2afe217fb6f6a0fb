/*
title = "OpenACC constructs by source line"
topic = "program"
place = 40
page = false
question = "Which OpenACC directives launch and copy what, at which source line?"
examples = ["", "--limit 0"]
aliases = ["openacc_sum"]
main = ["name", "place", "host_ns", "calls", "kernels", "kernel_ns", "copies", "copy_bytes"]
details = ["workers", "vector_length"]
description = """
Adds up the events of the OpenACC runtime by event, source file and line. Kernels and copies are those whose API call
begins on the same thread while the event is open, whenever they run: a construct contains the launches and copies
nested in it, so rows of different events must not be added."""
reading = """
One gang, or few: the loop runs on one or a few of the GPU's multiprocessors; parallelize the outer loop (gang
vector), and look for a dependence that the compiler reports (-Minfo=accel). Copies at the line of a compute construct
are implicit: a data region around the loop (data copyin, create, present) copies once. Much host_ns in Wait:
async clauses let the host continue."""
empty = """\
No OpenACC events are recorded in this scope; if the program uses OpenACC, capture with: nsys profile -t cuda,openacc"""

[columns]
name = "The event of the runtime"
place = "Source file and line of the directive; NULL where not recorded"
host_ns = "Sum of its durations on the host"
calls = "Number of the events"
kernels = "Kernels launched meanwhile on its thread"
kernel_ns = "Sum of their durations on the GPU"
copies = "Copies requested meanwhile on its thread"
copy_ns = "Sum of their durations on the GPU"
copy_bytes = "Sum of their sizes"
min_gangs = "The fewest gangs of its launches; NULL for other events"
max_gangs = "The most gangs"
workers = "The most workers per gang"
vector_length = "The largest vector length"
variables = "Variables whose data it handles"
function_name = "Function of the directive"
*/
WITH ranges AS MATERIALIZED (
    SELECT
        *, end_ns AS close_ns, thread_of(thread_id, process_id) AS thread,
        dense_rank() OVER (ORDER BY name, place, function_name) AS group_id
    FROM (SELECT *, source_file || coalesce(':' || line, '') AS place FROM openacc_events)
),
event_totals AS (
    SELECT
        group_id, name, place, function_name, sum(duration_ns)::BIGINT AS host_ns, count(*) AS calls,
        min(gangs) AS min_gangs, max(gangs) AS max_gangs, max(workers) AS workers, max(vector_length) AS vector_length,
        string_agg(DISTINCT variable, ', ' ORDER BY variable) AS variables
    FROM ranges
    GROUP BY ALL
)
SELECT
    e.name, e.place, e.host_ns, e.calls, coalesce(w.kernels, 0) AS kernels, coalesce(w.kernel_ns, 0) AS kernel_ns,
    coalesce(w.copies, 0) AS copies, coalesce(w.copy_ns, 0) AS copy_ns, coalesce(w.copy_bytes, 0) AS copy_bytes,
    e.min_gangs, e.max_gangs, e.workers, e.vector_length, e.variables, e.function_name
FROM event_totals AS e LEFT JOIN _operations_in('ranges') AS w USING (group_id)
ORDER BY e.host_ns DESC, e.name, e.place, e.function_name
