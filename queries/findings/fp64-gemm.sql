/*
code = "NSI412"
title = "Matrix products run in FP64"
family = "precision"
explains = ["hot-kernels"]
meaning = """
FP64 matrix products take at least twice as long as FP32, and many times as long on GPUs for graphics."""
evidence = ["{gemm_ns} {per} ({gemm_pct} of kernel time) in {calls:product} of doubles, most in {kernel}"]
caveat = """
The algorithm needs double precision."""
effort = "function"
numerics = "precision"
estimate = """
Low: 40 % of the time of these products: FP32 has half of the bytes. High: nine tenths where arithmetic bounds
them; half where the matrix is read for one vector (gemv)."""
links = ["CUDA C++ Programming Guide, Arithmetic Instructions: throughput by compute capability"]
report = "top"

[cure]
any = "Use single precision where the accuracy allows it, or solve in single precision with iterative refinement."
pytorch = "Keep tensors in torch.float32: a Python float or NumPy array of float64 makes them double."
jax = "Leave jax_enable_x64 off, or cast the inputs of the products to float32."
cupy = "Create arrays with dtype=cupy.float32: the default of NumPy arrays is float64."
cuda = "Use float where the accuracy allows it, or cuSOLVER's iterative refinement solvers (cusolverDnIRSXgesv)."

[params.least_pct]
default = 10.0
help = "Share of the kernel time of these products from which they are reported (10: a clear part of the step)"
*/
WITH gemms AS (
    SELECT
        sum(total_ns)::DOUBLE AS total_ns, sum(calls) AS calls, sum(kernel_time_pct) AS gemm_pct,
        kernel_base_name(arg_max(name, total_ns)) AS kernel,
        sum(total_ns * CASE WHEN regexp_matches(name, '(?i)gemv') THEN 0.55 ELSE 0.9 END)::DOUBLE AS high_ns
    FROM _steady_shapes
    WHERE family IN ('gemm', 'conv') AND regexp_matches(name, '(?i)dgemm|d884|_f64|f64f64|<double|double,')
    HAVING sum(kernel_time_pct) >= $least_pct
)
SELECT
    least(g.high_ns / t.units, t.high_limit_ns) AS recoverable_ns,
    least(0.4 * g.total_ns / t.units, t.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    g.kernel AS place,
    g.total_ns / t.units AS gemm_ns,
    g.gemm_pct, g.calls / t.units AS calls, g.kernel
FROM gemms AS g, _step_totals AS t
WHERE saving_low_ns > 0
