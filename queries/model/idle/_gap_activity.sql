/*
description = """All rows of `_host_activity` that overlap one of the `longest_gaps`, and all calls that launched
    `_gap_operations`; may contain more."""
[columns]
kind = "api: a CUDA API call; mpi: an MPI call; os: an operating system call; profiler: the profiler blocked the thread"
start_ns = "When the activity began"
end_ns = "When the activity ended"
name_id = "What was called: in `_api_names` and `strings`"
correlation_id = "Joins an API call with what it caused on the GPU, together with process_id"
*/
FROM facts.listed_activity;
