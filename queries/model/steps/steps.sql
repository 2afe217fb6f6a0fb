-- The table is filled when a query needs it: see nsys_insight/facts/steps/steps.py.
CREATE VIEW steps AS
SELECT * EXCLUDE (gpus)
FROM facts.steps;

COMMENT ON VIEW steps IS 'One row per step (a decoded token, a training iteration) of the process that is busiest, and per piece of work that is no step''s, with what it holds. Steps are found in the trace: `step_method` says how. Calls belong to the step in whose host interval they begin, by whichever thread; GPU operations to the step of their launch call.';
COMMENT ON COLUMN steps.step IS 'Number of the step in its process, from 0; NULL for work that is no step''s';
COMMENT ON COLUMN steps.phase IS 'steady; or warm-up (unlike the others, at the start), tail (the last one, whose end nobody sees), prefill (as many operations, but others and longer), other (work before, between or after steps)';
COMMENT ON COLUMN steps.is_outlier IS 'A steady step whose wall is not like the others''';
COMMENT ON COLUMN steps.reason IS 'What differs, of steps that are not like the others; why it is no step';
COMMENT ON COLUMN steps.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN steps.thread_id IS 'Thread that launched its first operation; NULL when not known';
COMMENT ON COLUMN steps.host_start_ns IS 'From when on what the host launches is the step''s';
COMMENT ON COLUMN steps.host_end_ns IS 'Until when';
COMMENT ON COLUMN steps.start_ns IS 'When the wall of the step begins: at its first operation on the GPU, or with its NVTX range';
COMMENT ON COLUMN steps.end_ns IS 'When it ends: at the next step''s first operation, or with its NVTX range';
COMMENT ON COLUMN steps.duration_ns IS 'The wall: end_ns - start_ns';
COMMENT ON COLUMN steps.gpu_busy_ns IS 'How much of the wall the GPU was busy, with whatever; a mean over the GPUs that the process used';
COMMENT ON COLUMN steps.gpu_idle_ns IS 'The rest of the wall';
COMMENT ON COLUMN steps.kernels IS 'Kernels launched in the step; NULL when a CUDA graph ran as a whole, whose kernels nobody knows';
COMMENT ON COLUMN steps.kernel_ns IS 'Sum of their durations';
COMMENT ON COLUMN steps.kernel_med_ns IS 'Median of their durations';
COMMENT ON COLUMN steps.launch_calls IS 'API calls that put kernels on the GPU, graph launches among them';
COMMENT ON COLUMN steps.graph_launches IS 'Launches of CUDA graphs';
COMMENT ON COLUMN steps.api_ns IS 'Time in CUDA API calls; calls inside other calls are not counted';
COMMENT ON COLUMN steps.api_launch_ns IS 'Of it, in launches of kernels and graphs';
COMMENT ON COLUMN steps.api_sync_ns IS 'Of it, in calls that wait for the GPU';
COMMENT ON COLUMN steps.api_copy_ns IS 'Of it, in copies and memsets';
COMMENT ON COLUMN steps.api_alloc_ns IS 'Of it, in allocations and frees';
COMMENT ON COLUMN steps.api_other_ns IS 'Of it, in all other calls';
COMMENT ON COLUMN steps.sync_calls IS 'Calls that wait for a stream, an event or a device';
COMMENT ON COLUMN steps.sync_points IS 'Times that the host waited for the GPU, as in `waits`: in sync calls and blocking copies';
COMMENT ON COLUMN steps.mallocs IS 'Calls that allocate memory';
COMMENT ON COLUMN steps.frees IS 'Calls that free it';
COMMENT ON COLUMN steps.h2d_copies IS 'Copies from host to device';
COMMENT ON COLUMN steps.h2d_bytes IS 'What they copied';
COMMENT ON COLUMN steps.d2h_copies IS 'Copies from device to host';
COMMENT ON COLUMN steps.d2h_bytes IS 'What they copied';
