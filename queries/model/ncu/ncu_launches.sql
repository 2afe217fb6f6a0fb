-- The catalog recognizes libraries by the namespaces in names, which ncu leaves out. The function's name alone may then
-- be enough.
CREATE VIEW ncu_launches AS
WITH distinct_kernels AS (
    SELECT
        kernel,
        CASE
            WHEN kernel_provenance(kernel) = 'hand-written' THEN kernel_provenance(kernel_base_name(kernel))
            ELSE kernel_provenance(kernel)
        END AS provenance
    FROM (SELECT DISTINCT kernel FROM raw.ncu_launches)
)
SELECT
    launch, report, ncu_id, process_id, process_name, kernel,
    kernel_base_name(kernel) AS short_name,
    coalesce(implementation, CASE
        WHEN regexp_matches(
            kernel, 'cublas|cudnn|cusparse|cusolver|^nvjet_|^(?:void )?(?:regular|vector)_fft|^conv2d_c1_k1_'
        )
            THEN 'library'
        WHEN regexp_matches(kernel, '(?:^|[^a-z_])cutlass_\d|sm\d+_xmma_|tensorop') THEN 'cutlass'
        WHEN provenance = 'CuTe' THEN 'cute'
        WHEN provenance = 'CUTLASS' THEN 'cutlass'
        WHEN provenance = 'Inductor' THEN 'inductor'
        WHEN provenance = 'Triton' THEN 'triton'
        WHEN provenance = 'PyTorch native' THEN 'pytorch'
        WHEN provenance IN ('FlashAttention', 'cuBLAS', 'cuDNN', 'NCCL', 'CUB/Thrust') THEN 'library'
        ELSE 'native'
    END) AS implementation,
    kernel_family(kernel) AS family,
    provenance,
    context_id, stream_id, device_id, compute_capability, grid_x, grid_y, grid_z, block_x, block_y, block_z
FROM raw.ncu_launches
LEFT JOIN distinct_kernels USING (kernel);

COMMENT ON VIEW ncu_launches IS
    'One row per launch that ncu profiled and `nsys-insight ncu import` read; empty without an import.';
COMMENT ON COLUMN ncu_launches.launch IS 'Number of the launch among all that were imported, from 0';
COMMENT ON COLUMN ncu_launches.report IS 'The file that it comes from, without suffixes';
COMMENT ON COLUMN ncu_launches.ncu_id IS 'ncu''s number of it in that report';
COMMENT ON COLUMN ncu_launches.process_id IS 'Operating system''s process id when ncu ran, not when nsys did';
COMMENT ON COLUMN ncu_launches.process_name IS 'Name of the process';
COMMENT ON COLUMN ncu_launches.kernel IS 'The kernel''s name as ncu prints it';
COMMENT ON COLUMN ncu_launches.short_name IS 'The function''s name alone';
COMMENT ON COLUMN ncu_launches.implementation IS
    'What it is written in, by the name or given with --type: native (CUDA C++), cutlass, cute, triton, inductor, '
    'pytorch, library';
COMMENT ON COLUMN ncu_launches.family IS 'What it does, as in `kernel_names`';
COMMENT ON COLUMN ncu_launches.provenance IS 'Where it comes from, as in `kernel_names`';
COMMENT ON COLUMN ncu_launches.context_id IS 'CUDA context';
COMMENT ON COLUMN ncu_launches.stream_id IS 'CUDA stream';
COMMENT ON COLUMN ncu_launches.device_id IS 'CUDA device number';
COMMENT ON COLUMN ncu_launches.compute_capability IS 'Compute capability of the GPU, major.minor';
COMMENT ON COLUMN ncu_launches.grid_x IS 'Blocks in the grid, x';
COMMENT ON COLUMN ncu_launches.grid_y IS 'Blocks in the grid, y';
COMMENT ON COLUMN ncu_launches.grid_z IS 'Blocks in the grid, z';
COMMENT ON COLUMN ncu_launches.block_x IS 'Threads in a block, x';
COMMENT ON COLUMN ncu_launches.block_y IS 'Threads in a block, y';
COMMENT ON COLUMN ncu_launches.block_z IS 'Threads in a block, z';
