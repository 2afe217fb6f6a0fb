/*
code = "NSI411"
title = "Matrix products run in FP32 without tensor cores"
family = "precision"
explains = ["kernel-time"]
meaning = """
FP32 matrix products run on the CUDA cores. In TF32 or 16 bits they run on the tensor cores, whose peak is
higher."""
evidence = [
    "{gemm_ns} {per} ({gemm_pct} of kernel time) in {calls:product} without tensor cores, most in {kernel}",
    [
        "the GPU's peak with TF32 is {peak_ratio} times that of FP32",
        "the GPU's peak with FP16 is {half_ratio} times that of FP32",
    ],
]
skip_if = """
The results need the full precision of FP32: TF32 and FP16 keep 10 bits of the mantissa instead of
23, BF16 keeps 7."""
effort = "flag"
numerics = "precision"
estimate = """
Low: 60% of the time of these products (TF32). High: 90% (BF16, which also halves the bytes), or less where the peak
with 16 bits is below ten times that of FP32; without a faster TF32, low is half of it. At most what the host leaves:
with its time in the trace (low), and with half of it (high)."""
links = ["NVIDIA A100 Tensor Core GPU Architecture, TF32", "PyTorch documentation, CUDA semantics: TensorFloat-32"]
report = "top"
when = "SELECT 1 FROM _step_totals WHERE busy_ns > 0.5 * wall_ns"

[fix.tf32]
any = "Let the matrix products use tensor cores: TF32, or BF16 with FP32 accumulation."
pytorch = """
Call torch.set_float32_matmul_precision("high") at the start (TF32), or run the model under
torch.autocast("cuda", dtype=torch.bfloat16)."""
jax = """
Set jax.config.update("jax_default_matmul_precision", "tensorfloat32"), or compute in bfloat16."""
cupy = "Set the environment variable CUPY_TF32=1, or compute in float16."
cuda = """
cuBLAS: compute type CUBLAS_COMPUTE_32F_FAST_TF32, or cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH); cuDNN:
CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION; or BF16 inputs."""
openacc = "Call cuBLAS with CUBLAS_COMPUTE_32F_FAST_TF32 for the products."
openmp = "Call cuBLAS with CUBLAS_COMPUTE_32F_FAST_TF32 for the products."
julia = "Call CUDA.math_mode!(CUDA.FAST_MATH), or use BFloat16 arrays."

[fix.half]
any = "Let the matrix products use tensor cores: 16-bit inputs with FP32 accumulation."
pytorch = """
Run the model under torch.autocast("cuda", dtype=torch.float16), in training with torch.amp.GradScaler."""
jax = "Compute in jnp.float16 or jnp.bfloat16."
cupy = "Compute in float16."
cuda = "Give cuBLAS FP16 inputs with CUBLAS_COMPUTE_32F (cublasGemmEx)."

[params]
min_pct = [10.0,
    "Share of the kernel time of these products from which they are reported (10: a clear part of the step)"]
*/
WITH gemms AS (
    SELECT
        coalesce(nullif(regexp_extract(s.name, 'cutlass_[0-9a-z]\w*'), ''), kernel_base_name(s.name)) AS kernel,
        sum(s.total_ns)::DOUBLE AS total_ns, sum(s.calls) AS calls,
        sum(s.kernel_time_pct) AS time_pct,
        regexp_matches(s.name, '(?i)ffma|simt|sgemm|scudnn|f32f32_f32f32_f32')
            AND NOT regexp_matches(s.name, '(?i)tf32|tensorop|f16|fp16|half|s1688|s884|hmma|int8|i8816') AS is_fp32
    FROM _steady_shapes AS s
    -- A word in the name of a kernel of no known library does not show what it computes.
    WHERE s.family IN ('gemm', 'conv') AND kernel_provenance(s.name) <> 'hand-written'
        -- The catalog of constructs has convolutions: what they need depends on their channels too.
        AND NOT regexp_matches(s.name, '(?i)convolve|scudnn|_(?:fprop|dgrad|wgrad)_')
    GROUP BY s.name
),
fp32_gemms AS (
    SELECT
        sum(total_ns) AS total_ns, sum(calls) AS calls, sum(time_pct) AS gemm_pct, arg_max(kernel, total_ns) AS kernel
    FROM gemms WHERE is_fp32
    HAVING sum(time_pct) >= $min_pct
),
peaks AS (
    -- GeForce GPUs accumulate in FP32 at half of the rate.
    SELECT
        max(tflop_per_s) FILTER (precision = 'fp32') * CASE WHEN any_value(gpu) LIKE '%GeForce%' THEN 2 ELSE 1 END
            AS fp32,
        max(tflop_per_s) FILTER (precision = 'tf32') / fp32 AS tf32_ratio,
        max(tflop_per_s) FILTER (precision = 'fp16') / fp32 AS half_ratio,
        coalesce(tf32_ratio > 2, false) AS has_tf32,
        least(0.9, 1 - 1 / half_ratio) AS high,
        CASE WHEN has_tf32 THEN 0.6 ELSE high / 2 END AS low
    FROM gpu_peaks
)
SELECT
    least(p.high * g.total_ns / t.units, limits.high_limit_ns) AS recoverable_ns,
    least(p.low * g.total_ns / t.units, limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    g.kernel AS place,
    CASE WHEN p.high * g.total_ns / t.units > limits.high_limit_ns THEN 'the host' END AS bounded_by,
    g.total_ns / t.units AS gemm_ns,
    g.gemm_pct, g.calls / t.units AS calls, g.kernel,
    CASE WHEN p.has_tf32 THEN p.tf32_ratio END AS peak_ratio,
    p.half_ratio,
    CASE WHEN p.has_tf32 THEN 'tf32' ELSE 'half' END AS cure_case
FROM fp32_gemms AS g, peaks AS p, _step_totals AS t, _step_limits AS limits
WHERE p.half_ratio >= 2 AND saving_low_ns > 0
