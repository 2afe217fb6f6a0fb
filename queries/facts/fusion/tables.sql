/*
topic = "fusion"
progress = "fusion candidates"
*/
-- The fusion candidates. The views `fusion_candidates`, `fusion_kernels` and `fusion_step` define the columns.
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

COMMENT ON VIEW fusion_kernels IS
    'The kernels of each of `fusion_candidates` in order, averaged over the occurrences of the chain in the typical '
    'step.';
COMMENT ON COLUMN fusion_kernels.candidate IS 'As in `fusion_candidates`';
COMMENT ON COLUMN fusion_kernels.position IS 'Place in the chain, from 1';
COMMENT ON COLUMN fusion_kernels.role IS 'fused; or stays, for one that the chain skips';
COMMENT ON COLUMN fusion_kernels.operation IS 'What it computes, by its name (queries/catalog/fusion_patterns.toml)';
COMMENT ON COLUMN fusion_kernels.name_id IS 'Id of the name, in `kernel_names`';
COMMENT ON COLUMN fusion_kernels.grid IS 'Blocks in the grid, in the first occurrence of the chain';
COMMENT ON COLUMN fusion_kernels.block IS 'Threads of a block';
COMMENT ON COLUMN fusion_kernels.shapes IS
    'How many different grids and blocks it has over the occurrences of the chain';
COMMENT ON COLUMN fusion_kernels.duration_ns IS 'How long it runs';
COMMENT ON COLUMN fusion_kernels.gap_ns IS
    'From the end of the operation before it on its stream to its start; 0 where they overlap';
COMMENT ON COLUMN fusion_kernels.host_ns IS
    'From its launch call to what the host does next for the GPU; NULL in a graph and where the trace lacks the call';
COMMENT ON COLUMN fusion_kernels.api_ns IS 'The launch call itself';
COMMENT ON COLUMN fusion_kernels.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN fusion_kernels.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN fusion_kernels.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN fusion_kernels.correlation_id IS 'Id of its launch call, in the first occurrence of the chain';
COMMENT ON COLUMN fusion_kernels.start_ns IS 'When it started, in the first occurrence of the chain';

COMMENT ON VIEW fusion_step IS
    'One row: the typical step in which `fusion_candidates` were found. No row where no steps were found, or their '
    'kernels are not in the trace.';
COMMENT ON COLUMN fusion_step.wall_ns IS 'How long it lasts';
COMMENT ON COLUMN fusion_step.replayed_ns IS
    'Step time when it is replayed unchanged: how well savings can be estimated';
COMMENT ON COLUMN fusion_step.together_low_ns IS 'What all chosen candidates together save at least';
COMMENT ON COLUMN fusion_step.together_high_ns IS 'What they save at most';
COMMENT ON COLUMN fusion_step.fixed_ns IS 'The fixed cost of a kernel: the time of the shortest ones';
COMMENT ON COLUMN fusion_step.layer_period IS
    'Operations of a layer on the stream with the most operations; NULL where no layers repeat';
COMMENT ON COLUMN fusion_step.layers IS 'Number of consecutive layers';
COMMENT ON COLUMN fusion_step.typical_steps IS 'Steps with the typical sequence of operations';
COMMENT ON COLUMN fusion_step.sampled_steps IS 'Steps that were examined';
COMMENT ON COLUMN fusion_step.kernels IS 'Kernels of the typical step';
COMMENT ON COLUMN fusion_step.process_id IS 'Operating system''s process id';
