/*
description = "The CPU samples within `_cpu_pieces` in which the thread had a CPU."
[columns]
gpu_id = "The GPU that waited"
thread = "The thread, as in `_cpu_pieces`"
start_ns = "When the sample was taken"
sample_id = "Id of its call chain in `call_frames`, of = 'sample'"
os_call_id = "Name of the operating system call that the thread was in; NULL outside all calls"
range_id = "Innermost NVTX range around it; NULL outside all ranges"
*/
WITH samples AS (
    SELECT *, start_ns + 1 AS end_ns FROM facts.gap_samples
)
SELECT * EXCLUDE (end_ns) FROM in_scope('samples');
