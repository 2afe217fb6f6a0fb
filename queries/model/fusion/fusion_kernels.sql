CREATE VIEW fusion_kernels AS
FROM facts.fusion_kernels;

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
