/*
description = """One row per step of a phase that an NVTX range names (prefill, decode, or both in one step; forward,
    backward, optimizer), of the busiest process, with what it holds, as in `steps`. A range around it that is named
    step is the step. Steps in a range named warm-up are left out."""
[columns]
phase_step = "Number of the step among these, from 0"
phase = "prefill, decode, mixed (a step that does both), forward, backward or optimizer, as the NVTX range is named"
batch_size = "Sequences that it decodes, or prompts of a prefill, as the name of the range says; NULL where it does not"
prompt_tokens = "Tokens of the prompts, as the name says"
graph = "Which CUDA graphs it launches, by the number of their instantiation; NULL for none"
process_id = "Operating system's process id"
thread_id = "Thread whose range it is"
host_start_ns = "When the range of the step was opened"
host_end_ns = "When the range of the step was closed"
start_ns = "When the wall time begins: with the range, or, where the host is ahead, at its first operation on the GPU"
end_ns = "When the wall time ends: with its range, or at the next operation that is not part of the step"
done_ns = "When the range of the step was closed and everything launched in it was done"
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
-- A query that needs the table fills it: see nsys_insight/facts/phases.py.
SELECT * EXCLUDE (gpus)
FROM facts.phase_steps;
