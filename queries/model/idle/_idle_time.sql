/*
description = """When each GPU was idle over the wall time of the whole trace, with the launch call of the operation
    that ended it, cut where the profiler blocked the launching thread: input of `_idle_in` and `_idle_of`."""
[columns]
start_ns = "When the GPU became idle"
end_ns = "When the next operation started"
thread = """Thread that launched it: its process id times 16,777,216, and its thread id; NULL where the launch call is
    not in the trace"""
call_ns = "When the thread that launched it entered the launch call"
returned_ns = "When the call returned"
is_copy = "Whether the call is a blocking copy"
host = """late; or why the host was not: same launch call, launched before, launch call in progress, managed memory
    (pages moved without a call), blocking copies (the call is a copy into pageable host memory, and was in progress),
    not in the trace, before the first operation, after the last operation; or profiler, which blocked the thread"""
sync_ns = "For a late gap, how long its thread was in calls that wait, before the launch call"
copy_ns = "How long in copies that block"
alloc_ns = "How long in calls that allocate or free memory"
mpi_ns = "How long in MPI calls"
api_ns = "How long in all other CUDA calls"
gap_ns = "start_ns before any cut"
gap_end_ns = "end_ns before any cut"
*/
SELECT *, start_ns AS gap_ns, end_ns AS gap_end_ns FROM facts.idle_time;
