/*
code = "NSI415"
title = "Tensors are converted between layouts around convolutions"
family = "layout"
explains = ["kernel-time", "fusion", "gemm-odd-sizes"]
meaning = """
Tensor cores compute convolutions in the layout NHWC. With tensors in NCHW, cuDNN converts input and output of each
layer."""
evidence = [
    "{conversion_ns} {per} ({conversion_pct} of kernel time) in {calls:conversion}, most in {kernel}",
    "{norm_ns} in batch normalization in NCHW",
]
skip_if = "Other layers of the model need NCHW."
effort = "line"
numerics = "rounding"
estimate = """
High: the time of the conversions, and two thirds of that of batch normalization, which is slower in NCHW: 63% went in
a training step. Low: 80% and 15%."""
links = ["cuDNN documentation, Tensor Layouts", "PyTorch documentation, Channels Last Memory Format"]
report = "top"
when = "SELECT 1 FROM _step_totals WHERE busy_ns > 0.5 * wall_ns"

[fix]
any = "Keep the tensors of the convolutions in the layout NHWC."
pytorch = "Use the memory format channels_last for model and input: model.to(memory_format=torch.channels_last)."
jax = "Use NHWC: lax.conv_general_dilated with dimension_numbers NHWC, HWIO, NHWC."
cuda = "Create the tensor descriptors with CUDNN_TENSOR_NHWC."
tensorrt = "Let the builder choose the formats of inputs and outputs, or set TensorFormat.HWC8."
*/
WITH kernels AS (
    SELECT
        *,
        regexp_matches(name, '(?i)nc?d?hwc?_?(to|2)_?nc?d?hwc?|convertTensor|tensorTransformGeneric') AS is_conversion,
        regexp_matches(name, '(?i)batch_?norm|::bn_(fw|bw)') AND NOT regexp_matches(name, '(?i)channels_last|nhwc')
            AS is_norm
    FROM _steady_shapes
),
conversions AS (
    SELECT
        sum(k.total_ns) FILTER (is_conversion)::DOUBLE AS total_ns, sum(calls) FILTER (is_conversion) AS calls,
        sum(kernel_time_pct) FILTER (is_conversion) AS conversion_pct,
        (
            SELECT kernel_base_name(name) FROM kernels WHERE is_conversion
            GROUP BY ALL ORDER BY sum(total_ns) DESC, kernel_base_name(name) LIMIT 1
        ) AS kernel,
        sum(k.total_ns) FILTER (is_norm)::DOUBLE AS norm_ns
    FROM kernels AS k
    HAVING count(*) FILTER (is_conversion) > 0
)
SELECT
    least((c.total_ns + 2 / 3 * coalesce(c.norm_ns, 0)) / t.units, limits.high_limit_ns) AS recoverable_ns,
    least((0.8 * c.total_ns + 0.15 * coalesce(c.norm_ns, 0)) / t.units, limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    c.kernel AS place,
    c.total_ns / t.units AS conversion_ns, c.conversion_pct, c.calls / t.units AS calls, c.kernel,
    c.norm_ns / t.units AS norm_ns
FROM conversions AS c, _step_totals AS t, _step_limits AS limits
WHERE saving_low_ns > 0
