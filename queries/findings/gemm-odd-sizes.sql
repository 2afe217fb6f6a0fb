/*
code = "NSI416"
title = "Matrix products have sizes that tensor cores handle badly"
family = "alignment"
explains = ["kernel-time"]
meaning = """
If a row of a matrix does not start at a multiple of 16 bytes, the library must load one or two elements at a time. The
tensor cores then wait for data."""
evidence = [
    """{gemm_ns} {per} ({gemm_pct} of kernel time) in {calls:product that loads|products that load} one or two elements
    at a time""",
    "most in {kernel}",
]
skip_if = "The size is fixed by an interface, or the matrices are views into larger ones whose rows cannot be padded."
effort = "line"
numerics = "rounding"
estimate = """
The time of these products. With loads of one 16-bit element: 50 to 88%; with two, or in TF32: 35 to 70%. Measured on
an H100 with 4096 against 4094 and 4095: 80%, 66% and 62%."""
links = ["NVIDIA Deep Learning Performance Documentation, Matrix Multiplication Background User's Guide"]
report = "top"
when = "SELECT 1 FROM _step_totals WHERE busy_ns > 0.5 * wall_ns"

[fix]
any = "Pad the sizes of the matrices to a multiple of 8 elements, better 64, and ignore the padding."
pytorch = """
Round the sizes of layers and of the vocabulary up to a multiple of 8, better 64 (50257 to 50304), and ignore the
outputs in excess."""
cupy = "Allocate the arrays with rows of a multiple of 8 elements, and multiply the padded arrays."
cuda = """
Make m, n, k and the leading dimensions that cuBLAS gets multiples of 8 elements (16 bytes), and align the pointers to
16 bytes."""

[params]
min_pct = [3.0, "Share of the kernel time of these products from which they are reported (3: padding costs little)"]
*/
WITH products AS (
    SELECT
        coalesce(nullif(regexp_extract(name, 'cutlass_[0-9a-z]\w*'), ''), kernel_base_name(name)) AS kernel,
        total_ns::DOUBLE AS total_ns, calls, kernel_time_pct,
        regexp_matches(name, '(?i)f16|fp16') AND regexp_matches(name, 'aligna?1(\b|_)|fp16_sgemm') AS is_slow
    FROM _steady_shapes
    -- A full load has 16 bytes: of doubles it has 2 elements, and kernels without tensor cores need none.
    WHERE family IN ('gemm', 'conv') AND (
        regexp_matches(name, 'fp16_sgemm')
        OR regexp_matches(name, '(?i)tensorop|s1688|s16816|s884|h884|h1688')
            AND regexp_matches(name, 'aligna?[12](\b|_)')
            AND NOT regexp_matches(name, '(?i)simt|d884|f64|_i8|s8_')
    )
),
slow_products AS (
    SELECT
        sum(total_ns) AS total_ns, sum(calls) AS calls, sum(kernel_time_pct) AS gemm_pct,
        arg_max(kernel, total_ns) AS kernel,
        sum(total_ns * CASE WHEN is_slow THEN 0.88 ELSE 0.7 END) AS high_ns,
        sum(total_ns * CASE WHEN is_slow THEN 0.5 ELSE 0.35 END) AS low_ns
    FROM products
    HAVING sum(kernel_time_pct) >= $min_pct
)
SELECT
    least(p.high_ns / t.units, limits.high_limit_ns) AS recoverable_ns,
    least(p.low_ns / t.units, limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    p.kernel AS place,
    CASE WHEN p.high_ns / t.units > limits.high_limit_ns THEN 'the host' END AS bounded_by,
    p.total_ns / t.units AS gemm_ns, p.gemm_pct, p.calls / t.units AS calls, p.kernel
FROM slow_products AS p, _step_totals AS t, _step_limits AS limits
WHERE saving_low_ns > 0
