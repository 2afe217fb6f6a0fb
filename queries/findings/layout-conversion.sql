/*
code = "NSI415"
title = "Tensors are converted between layouts around convolutions"
family = "layout"
explains = ["fusion"]
meaning = """
Tensor cores compute convolutions in the layout NHWC. With tensors in NCHW, cuDNN converts input and output of each
layer."""
evidence = [
    "{conversion_ns} {per} ({conversion_pct} of kernel time) in {calls:conversion}, most in {kernel}",
]
caveat = """
Other layers of the model need NCHW."""
effort = "line"
numerics = "rounding"
estimate = """
High: the time of the conversions, and as much again in faster normalization and pooling. Low: half of the
conversions."""
links = ["cuDNN documentation, Tensor Layouts", "PyTorch documentation, Channels Last Memory Format"]
report = "top"

[cure]
any = "Keep the tensors of the convolutions in the layout NHWC."
pytorch = """
Use the memory format channels_last for model and input: model.to(memory_format=torch.channels_last)."""
jax = "Use NHWC: lax.conv_general_dilated with dimension_numbers NHWC, HWIO, NHWC."
cuda = "Create the tensor descriptors with CUDNN_TENSOR_NHWC."
tensorrt = "Let the builder choose the formats of inputs and outputs, or set TensorFormat.HWC8."
*/
WITH conversions AS (
    SELECT
        sum(total_ns)::DOUBLE AS total_ns, sum(calls) AS calls, sum(kernel_time_pct) AS conversion_pct,
        kernel_base_name(arg_max(name, total_ns)) AS kernel
    FROM _steady_shapes
    WHERE regexp_matches(name, '(?i)nchwToNhwc|nhwcToNchw|convertTensor|nchw2nhwc|nhwc2nchw')
    HAVING count(*) > 0
)
SELECT
    least(1.5 * c.total_ns / t.units, t.high_limit_ns) AS recoverable_ns,
    least(0.5 * c.total_ns / t.units, t.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    c.kernel AS place,
    c.total_ns / t.units AS conversion_ns, c.conversion_pct, c.calls / t.units AS calls, c.kernel
FROM conversions AS c, _step_totals AS t
WHERE saving_low_ns > 0
