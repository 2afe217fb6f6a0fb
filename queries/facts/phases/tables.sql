/* scratch = "steps" */
-- The steps of phases and the requests that NVTX ranges name. The views `phase_steps` and `requests` document the
-- columns.
CREATE TABLE IF NOT EXISTS facts.phase_steps (
    phase_step BIGINT,
    phase VARCHAR,
    batch_size BIGINT,
    prompt_tokens BIGINT,
    graph VARCHAR,
    process_id BIGINT,
    thread_id BIGINT,
    host_start_ns BIGINT,
    host_end_ns BIGINT,
    start_ns BIGINT,
    end_ns BIGINT,
    done_ns BIGINT,
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

CREATE TABLE IF NOT EXISTS facts.requests (
    request VARCHAR, begins VARCHAR, start_ns BIGINT, first_token_ns BIGINT, last_token_ns BIGINT, tokens BIGINT,
    reason VARCHAR,
    token_ns BIGINT[]
)
