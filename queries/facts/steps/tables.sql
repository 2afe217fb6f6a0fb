/* options = ["steps"] */
-- What is found about steps. The views `steps`, `step_gpus` and `step_method` say what it means.
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
    mark_name VARCHAR
)
