-- A query that needs the table fills it: see nsys_insight/facts/steps.
CREATE VIEW steps AS
SELECT * EXCLUDE (gpus)
FROM facts.steps;

COMMENT ON VIEW steps IS
    'One row per step (a decoded token, a training iteration) of the busiest process, and per piece of work that '
    'belongs to no step, with what it contains. Steps are found in the trace: `step_method` says how. Calls belong '
    'to the step in whose host interval they begin, on any thread; GPU operations to the step of their launch call.';
COMMENT ON COLUMN steps.step IS 'Number of the step in its process, from 0; NULL for work that belongs to no step';
COMMENT ON COLUMN steps.phase IS
    'steady; or warm-up (unlike the others, at the start), tail (the last one, whose end is not recorded), prefill '
    '(as many operations, but different and longer), other (work before, between or after steps)';
COMMENT ON COLUMN steps.is_outlier IS 'A steady step whose step time differs from the others';
COMMENT ON COLUMN steps.reason IS 'What differs, for steps that differ from the others; why it is not a step';
COMMENT ON COLUMN steps.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN steps.thread_id IS 'Thread that launched its first operation; NULL when unknown';
COMMENT ON COLUMN steps.host_start_ns IS 'From this time, what the host launches belongs to the step';
COMMENT ON COLUMN steps.host_end_ns IS 'Until this time';
COMMENT ON COLUMN steps.start_ns IS
    'When the wall time of the step begins: at its first operation on the GPU, or with its NVTX range';
COMMENT ON COLUMN steps.end_ns IS 'When it ends: at the next step''s first operation, or with its NVTX range';
COMMENT ON COLUMN steps.duration_ns IS 'The wall time: end_ns - start_ns';
COMMENT ON COLUMN steps.gpu_busy_ns IS
    'Part of the wall time in which the GPU was busy; a mean over the GPUs that the process used';
COMMENT ON COLUMN steps.gpu_idle_ns IS 'Part of the wall time in which the GPU was idle';
COMMENT ON COLUMN steps.kernels IS
    'Kernels launched in the step; NULL when a CUDA graph ran as a whole and its kernels are not in the trace';
COMMENT ON COLUMN steps.kernel_ns IS 'Sum of their durations';
COMMENT ON COLUMN steps.kernel_med_ns IS 'Median of their durations';
COMMENT ON COLUMN steps.launch_calls IS 'API calls that put kernels on the GPU, including graph launches';
COMMENT ON COLUMN steps.graph_launches IS 'Launches of CUDA graphs';
COMMENT ON COLUMN steps.api_ns IS 'Time in CUDA API calls; calls inside other calls are not counted';
COMMENT ON COLUMN steps.api_launch_ns IS 'Part of api_ns in launches of kernels and graphs';
COMMENT ON COLUMN steps.api_sync_ns IS 'Part of api_ns in calls that wait for the GPU';
COMMENT ON COLUMN steps.api_copy_ns IS 'Part of api_ns in copies and memsets';
COMMENT ON COLUMN steps.api_alloc_ns IS 'Part of api_ns in allocations and frees';
COMMENT ON COLUMN steps.api_other_ns IS 'Part of api_ns in all other calls';
COMMENT ON COLUMN steps.sync_calls IS 'Calls that wait for a stream, an event or a device';
COMMENT ON COLUMN steps.sync_points IS
    'Times that the host waited for the GPU, as in `waits`: in sync calls and blocking copies';
COMMENT ON COLUMN steps.mallocs IS 'Calls that allocate memory';
COMMENT ON COLUMN steps.frees IS 'Calls that free it';
COMMENT ON COLUMN steps.h2d_copies IS 'Copies from host to device';
COMMENT ON COLUMN steps.h2d_bytes IS 'What they copied';
COMMENT ON COLUMN steps.d2h_copies IS 'Copies from device to host';
COMMENT ON COLUMN steps.d2h_bytes IS 'What they copied';
