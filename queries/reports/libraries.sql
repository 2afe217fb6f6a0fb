/*
title = "Calls of libraries"
topic = "program"
place = 42
page = false
question = "How much time do calls of cuBLAS, cuDNN, NCCL and other libraries take, and what do they run on the GPU?"
examples = ["", "--group-by library"]
main = ["name", "library", "host_ns", "calls", "kernels", "kernel_ns", "kernel_pct"]
details = ["avg_ns", "min_ns", "max_ns"]
description = """
Adds up the recorded calls of libraries. nsys records cuBLAS and cuDNN with -t cublas,cudnn, and calls
of NVENC, NVDEC and nvJPEG with -t nvvideo. Other libraries (NCCL,
CCCL, cuSPARSE, cuSOLVER, cuDF, …) mark their calls with NVTX ranges of a domain of their own, which -t nvtx records.
Kernels and copies are those whose API call begins on the same thread while the library's call is open, whenever they
run. A call inside a call of the same row counts once in times and kernels. Calls inside others have rows of their
own, so rows must not be added."""
reading = """
Much host_ns for few kernels: the library's set-up costs time (handles, plans, heuristics); do it once, before the loop.
Many calls with a short kernel each: use the batched form of the function."""
empty = """\
No calls of libraries are recorded in this scope; to record them, capture with: nsys profile -t \
cuda,nvtx,cublas,cudnn"""

[params.group_by]
default = "call"
choices = ["call", "library"]
help = "Add up by function, or by library"

[columns]
name = "The function; NULL with --group-by library"
library = "The library, or its NVTX domain"
host_ns = "Time of the host in its calls; threads add up"
calls = "How many calls"
kernels = "Kernels launched inside"
kernel_ns = "Sum of their durations on the GPU"
kernel_pct = "kernel_ns as a share of the time of all kernels"
copies = "Copies requested inside"
copy_ns = "Sum of their durations on the GPU"
copy_bytes = "Sum of their sizes"
avg_ns = "Mean duration of a call on the host"
min_ns = "Shortest"
max_ns = "Longest"
*/
WITH ranges AS MATERIALIZED (
    SELECT
        * REPLACE (CASE WHEN $group_by = 'call' THEN name END AS name),
        end_ns AS close_ns, thread_of(thread_id, process_id) AS thread,
        dense_rank() OVER (ORDER BY library, CASE WHEN $group_by = 'call' THEN name END) AS group_id
    FROM library_calls
),
call_totals AS (
    SELECT
        group_id, name, library, count(*) AS calls, avg(duration_ns) AS avg_ns, min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns
    FROM ranges
    GROUP BY ALL
),
host_times AS (
    SELECT group_id, sum(duration(start_ns, close_ns))::BIGINT AS host_ns
    FROM _stretches_of('ranges')
    GROUP BY group_id
)
SELECT
    c.name, c.library, h.host_ns, c.calls, coalesce(w.kernels, 0) AS kernels, coalesce(w.kernel_ns, 0) AS kernel_ns,
    100.0 * coalesce(w.kernel_ns, 0) / nullif((SELECT sum(duration_ns) FROM kernel_events), 0) AS kernel_pct,
    coalesce(w.copies, 0) AS copies, coalesce(w.copy_ns, 0) AS copy_ns, coalesce(w.copy_bytes, 0) AS copy_bytes,
    c.avg_ns, c.min_ns, c.max_ns
FROM call_totals AS c
JOIN host_times AS h USING (group_id)
LEFT JOIN _operations_in('ranges') AS w USING (group_id)
ORDER BY h.host_ns DESC, c.library, c.name
