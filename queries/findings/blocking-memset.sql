/*
code = "NSI203"
title = "The GPU is idle during synchronous memsets"
family = "launch"
overlaps = true
meaning = "Memset calls without Async in their name use the default stream, and can block the host."
evidence = [
    "the CPU spends {host_ns} in {memsets:synchronous memset} {per}",
    "the GPU is idle for {idle_ns} during these calls ({idle_pct} of the wall time)",
]
skip_if = "The call is outside the loop."
effort = "line"
estimate = "The idle time of the GPU during these calls."
links = ["CUDA Runtime API, API synchronization behavior: Memset"]
report = "host"

[fix]
any = "Set the memory asynchronously on the stream that needs it, or write the zeros in the first kernel that uses it."
cuda = "Use cudaMemsetAsync on the stream that needs the memory, or write the zeros in the first kernel that uses it."
kokkos = "Pass an execution space instance to deep_copy: Kokkos::deep_copy(space, view, 0)."
*/
SELECT
    recoverable_ns,
    wall_pct,
    NULL AS place,
    count AS memsets,
    host_ns,
    recoverable_ns AS idle_ns,
    wall_pct AS idle_pct
FROM host_report
WHERE code = 'blocking_memset'
