/*
code = "NSI427"
title = "Large arrays are in FP64"
family = "precision"
explains = ["kernel-time"]
meaning = """
Elementwise operations, sums and Fourier transforms of large arrays take as long as their bytes need. Numbers in FP64
have twice the bytes of FP32."""
evidence = [
    "{kernels_ns} {per} ({kernels_pct} of kernel time) in {calls:kernel} with FP64 in their names, most in {kernel}",
    "{?is_slow}the GPU's peak with FP32 is {peak_ratio} times that of FP64",
]
skip_if = "The results need more than the 7 digits of FP32: differences of nearly equal numbers, long sums, solvers."
effort = "line"
numerics = "precision"
estimate = """
High: half of the time of these kernels, as their bytes; where the GPU's peak with FP32 is more than four times that of
FP64, 90%. Low: 20%, as short rows and many threads take their time too."""
links = ["CUDA C++ Programming Guide, Arithmetic Instructions: throughput by compute capability"]
report = "top"
# A program in C++ names the type of each array: it has FP64 on purpose.
when = """
SELECT 1 FROM _steady_shapes
WHERE regexp_matches(name, '(?i)float64|complex128|\\bdouble\\b') AND avg_ns >= $long_ns
    AND EXISTS (FROM frameworks WHERE framework IN ('pytorch', 'inductor', 'cupy', 'numba') AND is_program)
HAVING sum(kernel_time_pct) >= $min_pct AND (SELECT busy_ns > 0.5 * wall_ns FROM _step_totals)"""

[fix]
any = "If the digits of FP32 suffice, make the arrays FP32 from the start: operations keep the type of their operands."
pytorch = """
If the digits of FP32 suffice, make the tensors float32 where they come from: torch.from_numpy keeps the float64 of
NumPy, so convert them once (.float()) before the loop."""
cupy = """
If the digits of FP32 suffice, make the arrays float32 where they are created (dtype=cupy.float32): float64 is the
default of CuPy and NumPy. A factor or filter in float64 makes each result float64 again."""

[params]
min_pct = [30.0, "Share of the kernel time of these kernels from which they are reported (30: a large part)"]
max_read_bytes = [16, "Largest copy to the host that is a single number (16: a complex number in FP64)"]
long_ns = [10000, "Shortest mean time of a kernel that counts (10 µs: shorter ones take as long with fewer bytes)"]
*/
WITH peaks AS (
    SELECT
        max(tflop_per_s) FILTER (precision = 'fp32') / max(tflop_per_s) FILTER (precision LIKE 'fp64%') AS peak_ratio,
        coalesce(peak_ratio > 4, false) AS is_slow
    FROM gpu_peaks
),
-- The result is FP64, by the last type of CuPy's name, the first of PyTorch's function, or that of cuFFT's kernel.
large_kernels AS (
    SELECT
        sum(total_ns)::DOUBLE AS total_ns, sum(calls) AS calls, sum(kernel_time_pct) AS kernels_pct,
        kernel_base_name(arg_max(name, total_ns)) AS kernel
    FROM _steady_shapes
    WHERE avg_ns >= $long_ns AND (
        regexp_matches(name, '^cupyx?_\w+__\w*(?:float64|complex128)$|_fft\w*<.*\bdouble\b')
        OR regexp_matches(name, 'at::native::\S*(?:elementwise|reduce)_kernel<')
            AND regexp_matches(name, '(?:\blambda\(|Functor\w*<|ReduceOp<)(?:double|c10::complex<double>)')
    )
    HAVING sum(kernel_time_pct) >= $min_pct
        -- An iterative solver or a test of convergence needs the digits: dot products, sparse products, several sums to
        -- one number in a step, or one that the host reads.
        AND NOT EXISTS (
            FROM _steady_shapes WHERE regexp_matches(name, '(?:dot_kernel|nrm2_kernel|csr\w*)<.*\bdouble\b')
        )
        AND coalesce((
            SELECT sum(calls) <= (SELECT units FROM _step_totals) AND NOT EXISTS (
                FROM memcpys WHERE copy_kind = 'D2H' AND size_bytes <= $max_read_bytes
            )
            FROM _steady_shapes WHERE regexp_matches(name, 'DeviceReduce\w*Kernel<.*\bdouble\b')
        ), true)
)
SELECT
    least(if(p.is_slow, 0.9, 0.5) * k.total_ns / t.units, limits.high_limit_ns) AS recoverable_ns,
    least(0.2 * k.total_ns / t.units, limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    CASE WHEN if(p.is_slow, 0.9, 0.5) * k.total_ns / t.units > limits.high_limit_ns THEN 'the host' END AS bounded_by,
    k.total_ns / t.units AS kernels_ns, k.kernels_pct, k.calls / t.units AS calls, k.kernel, p.is_slow, p.peak_ratio
FROM large_kernels AS k, peaks AS p, _step_totals AS t, _step_limits AS limits
WHERE saving_low_ns > 0
