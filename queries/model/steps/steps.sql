/*
description = """One row per step (a decoded token, a training iteration) of the busiest process, and per piece of work
    that belongs to no step, with what it contains. Steps are found in the trace: `step_method` says how. Calls belong
    to the step in whose host interval they begin, on any thread; GPU operations to the step of their launch call."""
[columns]
step = "Number of the step in its process, from 0; NULL for work that belongs to no step"
phase = """steady; or warm-up (unlike the others, at the start), tail (the last one, whose end is not recorded), prefill
    (as many operations, but different and longer), other (work before, between or after steps)"""
is_outlier = "A steady step whose step time differs from the others"
reason = "What differs, for steps that differ from the others; why it is not a step"
thread_id = "Thread that launched its first operation; NULL when unknown"
host_start_ns = "From this time, what the host launches belongs to the step"
host_end_ns = "Until this time"
start_ns = "When the wall time of the step begins: at its first operation on the GPU, or with its NVTX range"
end_ns = "When the wall time of the step ends: at the next step's first operation, or with its NVTX range"
duration_ns = "The wall time: end_ns - start_ns"
gpu_busy_ns = "Part of the wall time in which the GPU was busy; a mean over the GPUs that the process used"
gpu_idle_ns = "Part of the wall time in which the GPU was idle"
kernels = "Kernels launched in the step; NULL when a CUDA graph ran as a whole and its kernels are not in the trace"
kernel_ns = "Sum of their durations"
kernel_med_ns = "Median of their durations"
launch_calls = "API calls that put kernels on the GPU, including graph launches"
graph_launches = "Launches of CUDA graphs"
api_ns = "Time in CUDA API calls; calls inside other calls are not counted"
api_launch_ns = "Part of api_ns in launches of kernels and graphs"
api_sync_ns = "Part of api_ns in calls that wait for the GPU"
api_copy_ns = "Part of api_ns in copies and memsets"
api_alloc_ns = "Part of api_ns in allocations and frees"
api_other_ns = "Part of api_ns in all other calls"
sync_calls = "Calls that wait for a stream, an event or a device"
sync_points = "Times that the host waited for the GPU, as in `waits`: in sync calls and blocking copies"
mallocs = "Calls that allocate memory"
frees = "Calls that free it"
h2d_copies = "Copies from host to device"
h2d_bytes = "What they copied"
d2h_copies = "Copies from device to host"
d2h_bytes = "What they copied"
*/
-- A query that needs the table fills it: see nsys_insight/facts/steps.
SELECT * EXCLUDE (gpus)
FROM facts.steps;
