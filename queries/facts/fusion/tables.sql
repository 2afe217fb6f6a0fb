/* progress = "fusion candidates" */
-- What is found about fusion. The views `fusion_candidates` and `fusion_kernels` say what it means.
CREATE TABLE IF NOT EXISTS facts.fusions (
    candidate BIGINT,
    verdict VARCHAR,
    reason VARCHAR,
    pattern VARCHAR,
    chain VARCHAR,
    kernel_count BIGINT,
    per_step BIGINT,
    per_layer DOUBLE,
    layers BIGINT,
    proximity_ratio DOUBLE,
    recurrence_ratio DOUBLE,
    shapes VARCHAR,
    gemm_edge VARCHAR,
    complexity VARCHAR,
    remedy VARCHAR,
    kernels_saved BIGINT,
    launches_saved BIGINT,
    host_low_ns DOUBLE,
    host_high_ns DOUBLE,
    gap_ns DOUBLE,
    kernel_low_ns DOUBLE,
    kernel_high_ns DOUBLE,
    chain_ns DOUBLE,
    saved_low_ns DOUBLE,
    saved_high_ns DOUBLE,
    is_chosen BOOLEAN,
    process_id BIGINT,
    device_id BIGINT,
    stream_id BIGINT
);

CREATE TABLE IF NOT EXISTS facts.fusion_kernels (
    candidate BIGINT,
    position BIGINT,
    role VARCHAR,
    operation VARCHAR,
    name_id BIGINT,
    grid VARCHAR,
    block VARCHAR,
    shapes BIGINT,
    duration_ns DOUBLE,
    gap_ns DOUBLE,
    host_ns DOUBLE,
    api_ns DOUBLE,
    process_id BIGINT,
    device_id BIGINT,
    stream_id BIGINT,
    correlation_id BIGINT,
    start_ns BIGINT
);

CREATE TABLE IF NOT EXISTS facts.fusion_step (
    wall_ns DOUBLE,
    replayed_ns DOUBLE,
    together_low_ns DOUBLE,
    together_high_ns DOUBLE,
    fixed_ns DOUBLE,
    layer_period BIGINT,
    layers BIGINT,
    typical_steps BIGINT,
    sampled_steps BIGINT,
    kernels BIGINT,
    process_id BIGINT
)
