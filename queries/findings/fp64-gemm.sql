/*
code = "NSI412"
title = "Matrix products run in FP64"
family = "precision"
explains = ["kernel-time"]
meaning = """
FP64 matrix products move twice the bytes of FP32. On GPUs without FP64 tensor cores their peak is a half to a 64th of
that of FP32."""
evidence = [
    "{gemm_ns} {per} ({gemm_pct} of kernel time) in {calls:product} of doubles, most in {kernel}",
    [
        "{?is_slow}the GPU's peak with FP32 is {peak_ratio} times that of FP64",
        "{?has_tf32}the GPU's peak with FP32 is that of FP64, with TF32 it is {tf32_ratio} times that",
    ],
]
skip_if = "The algorithm needs double precision."
effort = "function"
numerics = "precision"
estimate = """
From the GPU's peaks. Low: FP32 without tensor cores, at two thirds of the gain in peak, at least 12%. High: 95% with
TF32, otherwise the gain in peak. Where the matrix is read for one vector (gemv), 30 to 50%: half of the bytes."""
links = ["CUDA C++ Programming Guide, Arithmetic Instructions: throughput by compute capability"]
report = "top"
when = "SELECT 1 FROM _step_totals WHERE busy_ns > 0.5 * wall_ns"

[fix]
any = "Use single precision where the accuracy allows it, or solve in single precision with iterative refinement."
pytorch = """
Keep tensors in torch.float32, with torch.set_float32_matmul_precision("high") for TF32. A NumPy array of float64 makes
them double."""
jax = "Leave jax_enable_x64 off, or cast the inputs of the products to float32."
cupy = "Create arrays with dtype=cupy.float32: the default of NumPy arrays is float64."
cuda = "Use float where the accuracy allows it, or cuSOLVER's iterative refinement solvers (cusolverDnIRSXgesv)."

[params]
min_pct = [10.0,
    "Share of the kernel time of these products from which they are reported (10: a clear part of the step)"]
*/
WITH peaks AS (
    SELECT
        max(tflop_per_s) FILTER (precision = 'fp32') / max(tflop_per_s) FILTER (precision LIKE 'fp64%') AS peak_ratio,
        max(tflop_per_s) FILTER (precision = 'tf32') / max(tflop_per_s) FILTER (precision LIKE 'fp64%') AS tf32_ratio,
        peak_ratio >= 1.5 AS is_slow, coalesce(tf32_ratio > 4 * peak_ratio, false) AS has_tf32,
        CASE WHEN has_tf32 THEN 0.95 ELSE least(0.9, 1 - 1 / coalesce(peak_ratio, 2)) END AS high,
        greatest(0.12, least(0.8, 1 - 1.5 / coalesce(peak_ratio, 2))) AS low
    FROM gpu_peaks
),
gemms AS (
    SELECT
        sum(total_ns)::DOUBLE AS total_ns, sum(calls) FILTER (name NOT LIKE '%splitK%') AS calls,
        sum(kernel_time_pct) AS gemm_pct,
        coalesce(
            nullif(regexp_extract(arg_max(name, total_ns), 'cutlass_[0-9a-z]\w*|gemvx::kernel'), ''),
            kernel_base_name(arg_max(name, total_ns))
        ) AS kernel,
        sum(total_ns * CASE WHEN is_vector THEN 0.5 ELSE p.high END)::DOUBLE AS high_ns,
        sum(total_ns * CASE WHEN is_vector THEN 0.3 ELSE p.low END)::DOUBLE AS low_ns,
        bool_and(is_vector) AS is_vector
    FROM (SELECT *, regexp_matches(name, '(?i)gemv|spmv|csr') AS is_vector FROM _steady_shapes), peaks AS p
    WHERE family IN ('gemm', 'conv')
        AND regexp_matches(name, '(?i)dgemm|d884|_f64|f64f64|<double|double,|\bdouble ?\*')
    HAVING sum(kernel_time_pct) >= $min_pct
)
SELECT
    least(g.high_ns / t.units, limits.high_limit_ns) AS recoverable_ns,
    least(g.low_ns / t.units, limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    g.kernel AS place,
    CASE WHEN g.high_ns / t.units > limits.high_limit_ns THEN 'the host' END AS bounded_by,
    g.total_ns / t.units AS gemm_ns,
    g.gemm_pct, g.calls / t.units AS calls, g.kernel,
    p.peak_ratio, p.tf32_ratio, p.is_slow AND NOT g.is_vector AS is_slow, p.has_tf32 AND NOT g.is_vector AS has_tf32
FROM gemms AS g, peaks AS p, _step_totals AS t, _step_limits AS limits
WHERE saving_low_ns > 0
