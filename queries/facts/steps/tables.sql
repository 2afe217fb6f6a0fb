/*
topic = "steps"
options = ["steps"]
*/
-- The facts about steps. The views `steps`, `step_gpus` and `step_method` document the columns.
CREATE TABLE IF NOT EXISTS facts.steps (
    step BIGINT,
    phase VARCHAR,
    is_outlier BOOLEAN,
    reason VARCHAR,
    process_id BIGINT,
    thread_id BIGINT,
    host_start_ns BIGINT,
    host_end_ns BIGINT,
    start_ns BIGINT,
    end_ns BIGINT,
    duration_ns BIGINT,
    gpu_busy_ns BIGINT,
    gpu_idle_ns BIGINT,
    kernels BIGINT,
    kernel_ns BIGINT,
    kernel_med_ns DOUBLE,
    launch_calls BIGINT,
    graph_launches BIGINT,
    api_ns BIGINT,
    api_launch_ns BIGINT,
    api_sync_ns BIGINT,
    api_copy_ns BIGINT,
    api_alloc_ns BIGINT,
    api_other_ns BIGINT,
    sync_calls BIGINT,
    sync_points BIGINT,
    mallocs BIGINT,
    frees BIGINT,
    h2d_copies BIGINT,
    h2d_bytes BIGINT,
    d2h_copies BIGINT,
    d2h_bytes BIGINT,
    gpus MAP(BIGINT, BIGINT)
);

CREATE TABLE IF NOT EXISTS facts.step_calls (
    step BIGINT, process_id BIGINT, thread_id BIGINT, call_group VARCHAR, calls BIGINT, time_ns BIGINT
);

CREATE TABLE IF NOT EXISTS facts.step_launches (
    step BIGINT, launch_calls BIGINT, graph_launches BIGINT, launch_queue_ns BIGINT, queue_ns BIGINT
);

CREATE TABLE IF NOT EXISTS facts.step_interruptions (
    start_ns BIGINT, end_ns BIGINT, duration_ns BIGINT, operations BIGINT, gpu_ns BIGINT, operation VARCHAR
);

CREATE TABLE IF NOT EXISTS facts.step_method (
    method VARCHAR,
    pattern VARCHAR,
    confidence VARCHAR,
    reason VARCHAR,
    process_id BIGINT,
    step_count BIGINT,
    steady_count BIGINT,
    outlier_count BIGINT,
    warm_up_count BIGINT,
    tail_count BIGINT,
    prefill_count BIGINT,
    tokens_per_step DOUBLE,
    loop VARCHAR,
    unit VARCHAR,
    doubt VARCHAR
)

COMMENT ON VIEW step_calls IS
    'How many CUDA API calls each thread made in each step, and how long they took, by what they are for, without '
    'calls inside others. A call belongs to the step in which it began on the host. For the whole scope where no '
    'step is steady.';
COMMENT ON COLUMN step_calls.step IS 'The step, as in `steps`; NULL for the whole scope';
COMMENT ON COLUMN step_calls.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN step_calls.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN step_calls.call_group IS
    'launch, graph launch, sync, copy, memset, alloc, free, graph, event, module or other, as in `api_calls`';
COMMENT ON COLUMN step_calls.calls IS 'Calls';
COMMENT ON COLUMN step_calls.time_ns IS 'Sum of their durations';

COMMENT ON VIEW step_interruptions IS
    'Other work between steps: an evaluation, a checkpoint, a log, the prefill of the next request. One row '
    'each.';
COMMENT ON COLUMN step_interruptions.start_ns IS 'When the step before it ends';
COMMENT ON COLUMN step_interruptions.end_ns IS 'When the next step starts';
COMMENT ON COLUMN step_interruptions.duration_ns IS 'end_ns - start_ns';
COMMENT ON COLUMN step_interruptions.operations IS 'Kernels, copies, memsets and graphs in it';
COMMENT ON COLUMN step_interruptions.gpu_ns IS 'Sum of their durations';
COMMENT ON COLUMN step_interruptions.operation IS 'The kernel, or the kind of copy, that takes most of this time';

COMMENT ON VIEW step_launches IS
    'TKLQT, the total launch and queuing time of the kernels of each steady step (Vellaisamy et al., arXiv '
    '2504.11750): from the start of each launch call to the start of its kernel on the GPU. For the whole scope '
    'where no steps were found. A graph counts once, to its first kernel; kernels without a launch call do not '
    'count.';
COMMENT ON COLUMN step_launches.step IS 'Number of the step; NULL for the whole scope';
COMMENT ON COLUMN step_launches.launch_calls IS
    'Launch calls whose kernel or graph is in the trace, including graph launches';
COMMENT ON COLUMN step_launches.graph_launches IS 'Launches of CUDA graphs';
COMMENT ON COLUMN step_launches.launch_queue_ns IS
    'Sum of the times from the start of the call to the start on the GPU: TKLQT';
COMMENT ON COLUMN step_launches.queue_ns IS 'Part of launch_queue_ns after the call had returned';
