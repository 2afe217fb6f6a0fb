/*
code = "NSI203"
title = "Memsets block the host"
family = "launch"
overlaps = true
meaning = """
cudaMemset is called where cudaMemsetAsync would do, and the GPU is idle during the call."""
evidence = [
    "{memsets:blocking memset} {per}, in which the host spends {host_ns}",
    "the GPU is idle for {idle_ns} of it ({idle_pct} of the wall time)",
]
caveat = """
The call is outside the loop."""
effort = "line"
estimate = """
The idle time of the GPU during these calls."""
links = ["CUDA Runtime API, API synchronization behavior: Memset"]
report = "host"

[cure]
any = """
Set the memory asynchronously on the stream that needs it, or write the zeros in the first kernel that uses it."""
cuda = """
Use cudaMemsetAsync on the stream that needs the memory, or write the zeros in the first kernel that uses it."""
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
