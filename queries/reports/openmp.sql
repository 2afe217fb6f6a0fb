/*
title = "OpenMP constructs"
topic = "program"
place = 41
page = false
question = "How long are threads in OpenMP constructs and their waits, and what do target regions run on the GPU?"
examples = ["", "--limit 0"]
aliases = ["openmp_sum"]
main = ["name", "kind", "host_ns", "calls", "threads", "kernels", "kernel_ns", "copies", "copy_ns"]
details = ["avg_ns", "min_ns", "max_ns"]
description = """
Adds up the events of the OpenMP runtime on the host by name. Times of different threads add up. Constructs contain
others (a worksharing loop lies in a parallel region, a wait in a synchronization), so rows of different kinds must
not be added. Kernels and copies are those whose API call begins on the same thread while the event is open. nsys
records no source lines for OpenMP, and no events of target constructs. Those are rows of their own, of kind target:
the compiler writes function and line into the names of their kernels (NVHPC and LLVM do). Not read: events without a
duration (task creation and scheduling, cancellation, creation and release of locks, dispatch, flush)."""
reading = """
Much time in waits: the threads of a region do not arrive together; try schedule(dynamic), or nowait where the next
loop does not need the result. Many short target regions: join them, or keep data on the GPU with target data.
Copies in a loop over target regions: map(to:) and map(from:) once around the loop."""
empty = """\
No OpenMP events are recorded in this scope; if the program uses OpenMP, capture with: nsys profile -t cuda,openmp"""

[columns]
name = "The event in nsys's words; for a target region, its function and line"
kind = "What it is: parallel, worksharing, wait, …; target for a target region"
host_ns = "Sum of its durations on the host; NULL for a target region"
calls = "Number of the events; for a target region, its kernels"
threads = "Threads on which it happened"
kernels = "Kernels launched meanwhile on its thread"
kernel_ns = "Sum of their durations on the GPU"
copies = "Copies requested meanwhile on its thread; NULL for a target region"
copy_ns = "Sum of their durations on the GPU"
copy_bytes = "Sum of their sizes"
avg_ns = "Mean duration on the host; for a target region, of its kernels"
min_ns = "Shortest"
max_ns = "Longest"
*/
WITH ranges AS MATERIALIZED (
    SELECT
        *, end_ns AS close_ns, thread_of(thread_id, process_id) AS thread,
        dense_rank() OVER (ORDER BY kind, name) AS group_id
    FROM openmp_events
),
target_names AS (
    SELECT
        name_id,
        -- nvkernel_relax_F1L40_2 is NVHPC's, __omp_offloading_fd00_a1b2c3_relax_l40 is LLVM's.
        regexp_extract(
            value, '^(?:nvkernel_|__omp_offloading_[0-9a-f]+_[0-9a-f]+_)(\w+?)_(?:F\d+L|l)(\d+)', ['function', 'line']
        ) AS region
    FROM (SELECT name_id, name AS value FROM strings)
    WHERE name_id IN (SELECT name_id FROM kernel_events) AND regexp_matches(value, '^nvkernel_|^__omp_offloading_')
),
targets AS (
    SELECT
        region.function || ':' || region.line AS name, count(*) AS kernels, sum(k.duration_ns)::BIGINT AS kernel_ns,
        avg(k.duration_ns) AS avg_ns, min(k.duration_ns) AS min_ns, max(k.duration_ns) AS max_ns,
        count(DISTINCT thread_of(a.thread_id, a.process_id)) AS threads
    FROM kernel_events AS k
    JOIN target_names AS n USING (name_id)
    LEFT JOIN api_calls AS a USING (process_id, correlation_id)
    WHERE region.function <> ''
    GROUP BY ALL
),
event_totals AS (
    SELECT
        group_id, name, kind, sum(duration_ns)::BIGINT AS host_ns, count(*) AS calls,
        count(DISTINCT thread) AS threads, avg(duration_ns) AS avg_ns, min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns
    FROM ranges
    GROUP BY ALL
)
SELECT
    e.name, e.kind, e.host_ns, e.calls, e.threads, coalesce(w.kernels, 0) AS kernels,
    coalesce(w.kernel_ns, 0) AS kernel_ns, coalesce(w.copies, 0) AS copies, coalesce(w.copy_ns, 0) AS copy_ns,
    coalesce(w.copy_bytes, 0) AS copy_bytes, e.avg_ns, e.min_ns, e.max_ns
FROM event_totals AS e LEFT JOIN _operations_in('ranges') AS w USING (group_id)
UNION ALL
SELECT name, 'target', NULL, kernels, threads, kernels, kernel_ns, NULL, NULL, NULL, avg_ns, min_ns, max_ns
FROM targets
ORDER BY host_ns DESC NULLS LAST, kernel_ns DESC, name, kind
