/*
code = "NSI402"
title = "Fusible kernel chains"
family = "fusion"
overlaps = true
meaning = """
The same chains of small kernels repeat in every step. As one kernel each, they would need fewer launches and fewer
passes over memory."""
evidence = [
    [
        "fusing {chains:chain} saves {low_ns} to {high_ns} {per} under nsys: {largest_chains}",
        """fusing {chains:chain} saves up to {high_ns} {per} under nsys, or nothing where Python launches the fused
        kernels:
        {largest_chains}""",
    ],
    "{more_chains:more chain}",
]
skip_if = "The fused kernel launches more slowly than the chain it replaces."
effort = "function"
numerics = "rounding"
estimate = """
Low: the memory passes that fusing removes, at the rate of these kernels. High: with the launches that it removes,
where the GPU waits for them."""
links = ["PyTorch documentation, torch.compile", "NVIDIA Transformer Engine documentation"]
example = "sample_traces/decode_eager.sqlite"
report = "fusion"

[items]
largest_chains = [["{pattern} {occurrences}×", "{kernels:kernel} in a row {occurrences}×"]]

[fix.chains]
any = "Write each chain as one kernel, or use a library's fused kernel; start with the first chain."
pytorch = """
Use torch.compile for the module that has the chain, a library's fused kernel, or one in Triton; start with the first
chain."""
inductor = """
See why the compiler does not fuse the chain: a graph break (TORCH_LOGS=graph_breaks), a custom operator, a layout;
start with the first chain."""
jax = """
Put the operations under one jax.jit. Where XLA leaves them apart in one, write the chain as one Pallas kernel; start
with the first chain."""
cupy = "Write each chain as one kernel: cupy.fuse, ElementwiseKernel or RawKernel; start with the first chain."
numba = "Write each chain as one cuda.jit kernel; start with the first chain."
cuda = "Write each chain as one kernel, or use cuBLASLt epilogues, cuDNN graphs or CUTLASS; start with the first chain."
openacc = "Merge the loops into one parallel region; start with the first chain."
openmp = "Merge the loops into one target region; start with the first chain."
julia = "Fuse the operations into one broadcast expression (@.); start with the first chain."

[fix.known]
any = "Write each chain as one kernel, or use a library's fused kernel; start with the first chain."
pytorch = """
For {first_pattern}: {first_remedy}. For other chains, use torch.compile for the module that has them, a library's fused
kernel, or one in Triton."""

[fix.optimizer]
any = "Update the parameters with the optimizer's fused kernel. For other chains, use a compiler or a fused kernel."
pytorch = """
Create the optimizer with fused=True: torch.optim.AdamW(params, fused=True). For other chains, use torch.compile."""
inductor = """
Create the optimizer with fused=True: torch.optim.AdamW(params, fused=True). For other chains, see why the compiler does
not fuse them (TORCH_LOGS=graph_breaks)."""

[params]
long_ns = [20000, "Mean duration from which kernels of a compiler are left apart (20 µs: a launch takes less)"]
*/
-- A compiler that fused what it could has a reason to keep two long kernels apart, such as neighbors of an element that
-- other blocks compute. Between short ones, a launch is still saved.
WITH compiled_chains AS (
    SELECT f.candidate
    FROM fusion_kernels AS f JOIN kernel_names AS n ON n.name_id = f.name_id
    WHERE f.role = 'fused'
    GROUP BY f.candidate
    HAVING bool_and(n.provenance IN ('XLA', 'Inductor')) AND avg(f.duration_ns) >= $long_ns
),
-- A chain that only makes random numbers makes the input of a benchmark.
chosen_candidates AS (
    SELECT *,
        chain LIKE '%random%' AND regexp_full_match(chain, '(random|fill|copy|[0-9]+ ×|[()→ ])+')
            OR candidate IN (FROM compiled_chains) AS stays,
        -- Chains of one kind are counted together.
        coalesce(nullif(pattern, 'unrecognized'), kernel_count::VARCHAR) AS kind
    FROM fusion_report WHERE chosen
),
kinds AS (
    SELECT
        any_value(nullif(pattern, 'unrecognized')) AS pattern, any_value(remedy) AS remedy,
        any_value(kernel_count) AS kernels, sum(per_step) AS occurrences,
        count(*) AS chains, row_number() OVER (ORDER BY min(candidate)) AS turn
    FROM chosen_candidates WHERE NOT stays
    GROUP BY kind
),
other_chains AS (
    SELECT coalesce(sum(saved_high_ns), 0) AS high_ns, coalesce(sum(greatest(saved_low_ns, 0)), 0) AS low_ns
    FROM chosen_candidates WHERE stays
),
saving AS (
    SELECT
        s.wall_ns, s.together_high_ns - r.high_ns AS together_high_ns,
        least(s.together_low_ns - r.low_ns, s.together_high_ns - r.high_ns) AS together_low_ns
    FROM fusion_step AS s, other_chains AS r
),
chains AS (
    SELECT
        sum(chains) AS chains, nullif(sum(chains) FILTER (turn > 3), 0) AS more_chains,
        list({'pattern': pattern, 'kernels': kernels, 'occurrences': occurrences} ORDER BY turn)
            FILTER (turn <= 3) AS largest_chains,
        any_value(pattern) FILTER (turn = 1) AS first_pattern,
        any_value(nullif(remedy, 'novel')) FILTER (turn = 1) AS first_remedy,
        CASE
            WHEN bool_or(turn = 1 AND pattern LIKE 'optimizer%') THEN 'optimizer'
            -- The remedies of the catalog are in the words of PyTorch.
            WHEN first_pattern IS NOT NULL AND first_remedy IS NOT NULL
                AND EXISTS (FROM frameworks WHERE framework = 'pytorch' AND is_program) THEN 'known'
            ELSE 'chains'
        END AS cure_case
    FROM kinds
)
SELECT
    s.together_high_ns / m.tokens_per_step AS recoverable_ns,
    100 * s.together_high_ns / s.wall_ns AS wall_pct,
    NULL AS place,
    nullif(greatest(s.together_low_ns, 0), 0) / m.tokens_per_step AS low_ns,
    s.together_high_ns / m.tokens_per_step AS high_ns,
    nullif(greatest(s.together_low_ns, 0), 0) / m.tokens_per_step AS saving_low_ns,
    c.*
FROM saving AS s
CROSS JOIN step_method AS m
CROSS JOIN chains AS c
WHERE c.chains > 0 AND s.together_high_ns > 0
