/*
description = "One row per launch that ncu profiled and `nsys-insight ncu import` read; empty without an import."
[columns]
launch = "Number of the launch among all that were imported, from 0"
report = "The file that it comes from, without suffixes"
ncu_id = "ncu's number of it in that report"
process_id = "Operating system's process id when ncu ran, not when nsys did"
process_name = "Name of the process"
kernel = "The kernel's name as ncu prints it"
short_name = "The function's name alone"
implementation = """What it is written in, by the name or given with --type: native (CUDA C++), cutlass, cute, triton,
    inductor, pytorch, library"""
family = "What it does, as in `kernel_names`"
provenance = "Where the kernel comes from, as in `kernel_names`"
stream_id = "CUDA stream"
device_id = "CUDA device number"
compute_capability = "Compute capability of the GPU, major.minor"
*/
-- The catalog recognizes libraries by the namespaces in names, which ncu leaves out. The function's name alone may then
-- be enough.
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
