/*
description = """What a thread did while a GPU waited for it outside of CUDA calls, piece by piece, cut to the scope's
    own time; no row where the trace does not record what a CPU did."""
[columns]
thread = "Thread that launched next: its process id times 16,777,216, and its thread id"
gap_ns = "When the gap began"
start_ns = "When the piece began"
end_ns = "When the piece ended"
os_call_id = "Name of the operating system call that the thread was in; NULL outside all calls"
is_off = "Whether the thread had no CPU; NULL where its switches were not recorded"
range_id = "Innermost NVTX range around it, in `nvtx_nesting`; NULL outside all ranges"
*/
WITH pieces AS (
    FROM facts.cpu_pieces
)
FROM in_scope('pieces');
