/*
description = """What the program is written in, one row per framework with evidence: pytorch, inductor (torch.compile),
    jax, cupy, numba, openacc, openmp, kokkos, sycl, tensorrt, julia, cuda (CUDA C++), python (an unknown one)."""
stored = true
[columns]
framework = "The framework"
kernel_time_pct = "Share of the kernel time of the steps in kernels that only it has; NULL if other data shows it"
evidence = "What shows it"
is_program = "Whether the framework is that of the program: one row"
*/
WITH cuda_processes AS (
    SELECT name
    FROM processes
    WHERE process_id IN (SELECT process_id FROM _call_counts UNION ALL SELECT process_id FROM _operation_counts)
),
kernel_times AS (
    SELECT
        CASE n.provenance
            WHEN 'PyTorch native' THEN 'pytorch' WHEN 'Inductor' THEN 'inductor' WHEN 'XLA' THEN 'jax'
            WHEN 'CuPy' THEN 'cupy' WHEN 'Numba' THEN 'numba' WHEN 'OpenACC' THEN 'openacc' WHEN 'OpenMP' THEN 'openmp'
            WHEN 'Kokkos' THEN 'kokkos' WHEN 'SYCL' THEN 'sycl' WHEN 'TensorRT' THEN 'tensorrt'
            WHEN 'Julia' THEN 'julia'
            WHEN 'hand-written'
                THEN CASE WHEN EXISTS (FROM cuda_processes) THEN 'cuda' END
        END AS framework,
        sum(k.total_ns)::DOUBLE AS gpu_ns, arg_max(n.name, k.total_ns) AS kernel
    FROM _steady_shapes AS k
    JOIN kernel_names AS n ON n.name = k.name
    GROUP BY framework
),
kernel_evidence AS (
    SELECT
        framework, 100 * gpu_ns / (SELECT sum(gpu_ns) FROM kernel_times) AS kernel_time_pct,
        'kernels such as ' || kernel AS evidence
    FROM kernel_times
),
other_evidence AS (
    SELECT framework, NULL::DOUBLE AS kernel_time_pct, any_value(evidence) AS evidence
    FROM (
        SELECT
            CASE
                WHEN value LIKE 'XlaModule:%' OR value LIKE '%/jaxlib/%' THEN 'jax'
                WHEN value LIKE '%/libtorch_cuda%' THEN 'pytorch'
                WHEN value LIKE '%/cupy/%.so' THEN 'cupy'
            END AS framework,
            CASE
                WHEN value LIKE 'XlaModule:%' THEN 'NVTX ranges of XLA'
                ELSE 'the library ' || split_part(value, '/', -1)
            END AS evidence
        FROM raw.StringIds
        WHERE NOT contains(value, chr(0)) -- an environment
    )
    WHERE framework IS NOT NULL
    GROUP BY framework
    UNION ALL
    SELECT 'python', NULL, 'the process ' || any_value(name)
    FROM cuda_processes
    WHERE regexp_extract(name, '(^|/)(python[0-9.]*|ipython[0-9]*|jupyter[a-z-]*)$') <> ''
    HAVING count(*) > 0
),
candidates AS (
    SELECT
        framework, max(kernel_time_pct) AS kernel_time_pct,
        string_agg(evidence, '; ' ORDER BY kernel_time_pct) AS evidence
    FROM (FROM kernel_evidence WHERE framework IS NOT NULL UNION ALL FROM other_evidence)
    GROUP BY framework
),
-- XLA's graphs hide their kernels. A compiled model has kernels of PyTorch between those of Inductor. Kernels of no
-- known origin in a Python process are Triton's or an extension's.
prioritized_frameworks AS (
    SELECT
        *,
        CASE
            WHEN framework = 'jax' THEN 5
            WHEN framework = 'inductor'
                AND kernel_time_pct >= coalesce((SELECT kernel_time_pct FROM candidates WHERE framework = 'pytorch'), 0)
                    / 4 THEN 4
            WHEN framework IN ('cuda', 'python') THEN 1
            WHEN framework = 'inductor' THEN 2
            ELSE 3
        END AS priority
    FROM candidates
)
SELECT
    framework, kernel_time_pct, evidence,
    row_number() OVER (
        ORDER BY priority DESC, framework = 'python' DESC, kernel_time_pct DESC NULLS LAST, framework
    ) = 1 AS is_program
FROM prioritized_frameworks;
