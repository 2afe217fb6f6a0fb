-- A query that needs the table fills it: see nsys_insight/facts/phases.py.
CREATE VIEW phase_steps AS
SELECT * EXCLUDE (gpus)
FROM facts.phase_steps;

COMMENT ON VIEW phase_steps IS
    'One row per step of a phase that an NVTX range names (prefill, decode, or both in one step; forward, backward, '
    'optimizer), of the busiest process, with what it holds, as in `steps`. A range around it that is named step is '
    'the step. Steps in a range named warm-up are left out.';
COMMENT ON COLUMN phase_steps.phase_step IS 'Number of the step among these, from 0';
COMMENT ON COLUMN phase_steps.phase IS
    'prefill, decode, mixed (a step that does both), forward, backward or optimizer, as the NVTX range is named';
COMMENT ON COLUMN phase_steps.batch_size IS
    'Sequences that it decodes, or prompts of a prefill, as the name of the range says; NULL where it does not';
COMMENT ON COLUMN phase_steps.prompt_tokens IS 'Tokens of the prompts, as the name says';
COMMENT ON COLUMN phase_steps.graph IS
    'Which CUDA graphs it launches, by the number of their instantiation; NULL for none';
COMMENT ON COLUMN phase_steps.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN phase_steps.thread_id IS 'Thread whose range it is';
COMMENT ON COLUMN phase_steps.host_start_ns IS 'When its range was opened';
COMMENT ON COLUMN phase_steps.host_end_ns IS 'When its range was closed';
COMMENT ON COLUMN phase_steps.start_ns IS
    'When its wall time begins: with its range, or, where the host is ahead, at its first operation on the GPU';
COMMENT ON COLUMN phase_steps.end_ns IS 'When it ends: with its range, or at the next operation that is not its own';
COMMENT ON COLUMN phase_steps.done_ns IS 'When its range was closed and everything launched in it was done';
COMMENT ON COLUMN phase_steps.duration_ns IS 'The wall time: end_ns - start_ns';
COMMENT ON COLUMN phase_steps.gpu_busy_ns IS
    'Part of the wall time in which the GPU was busy; a mean over the GPUs that the process used';
COMMENT ON COLUMN phase_steps.gpu_idle_ns IS 'Part of the wall time in which the GPU was idle';
COMMENT ON COLUMN phase_steps.kernels IS
    'Kernels launched in the step; NULL when a CUDA graph ran as a whole and its kernels are not in the trace';
COMMENT ON COLUMN phase_steps.kernel_ns IS 'Sum of their durations';
COMMENT ON COLUMN phase_steps.kernel_med_ns IS 'Median of their durations';
COMMENT ON COLUMN phase_steps.launch_calls IS 'API calls that put kernels on the GPU, including graph launches';
COMMENT ON COLUMN phase_steps.graph_launches IS 'Launches of CUDA graphs';
COMMENT ON COLUMN phase_steps.api_ns IS 'Time in CUDA API calls; calls inside other calls are not counted';
COMMENT ON COLUMN phase_steps.api_launch_ns IS 'Part of api_ns in launches of kernels and graphs';
COMMENT ON COLUMN phase_steps.api_sync_ns IS 'Part of api_ns in calls that wait for the GPU';
COMMENT ON COLUMN phase_steps.api_copy_ns IS 'Part of api_ns in copies and memsets';
COMMENT ON COLUMN phase_steps.api_alloc_ns IS 'Part of api_ns in allocations and frees';
COMMENT ON COLUMN phase_steps.api_other_ns IS 'Part of api_ns in all other calls';
COMMENT ON COLUMN phase_steps.sync_calls IS 'Calls that wait for a stream, an event or a device';
COMMENT ON COLUMN phase_steps.sync_points IS
    'Times that the host waited for the GPU, as in `waits`: in sync calls and blocking copies';
COMMENT ON COLUMN phase_steps.mallocs IS 'Calls that allocate memory';
COMMENT ON COLUMN phase_steps.frees IS 'Calls that free it';
COMMENT ON COLUMN phase_steps.h2d_copies IS 'Copies from host to device';
COMMENT ON COLUMN phase_steps.h2d_bytes IS 'What they copied';
COMMENT ON COLUMN phase_steps.d2h_copies IS 'Copies from device to host';
COMMENT ON COLUMN phase_steps.d2h_bytes IS 'What they copied';
