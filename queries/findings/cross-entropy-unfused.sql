/*
code = "NSI418"
title = "The loss writes the logits of a large vocabulary several times"
family = "loss"
explains = ["hot-kernels"]
meaning = """
Softmax, loss and their backward pass are separate kernels. Each reads or writes a matrix with one row for each token
and one column for each class."""
evidence = [
    "{softmax_ns} {per} ({softmax_pct} of kernel time) in {calls:log-softmax kernel}, forward and backward",
    "the loss itself is another kernel, {kernel}",
]
caveat = """
The program needs the log-probabilities of all classes themselves."""
effort = "line"
numerics = "rounding"
estimate = """
Low: 60% of the time of these kernels. High: 170%, because conversions and fills of the matrix around them go too."""
links = ["PyTorch documentation, torch.compile"]
report = "top"

[cure]
any = "Fuse the last matrix product, the softmax and the loss, or compute the loss in chunks of tokens."
pytorch = """
Compile the loss: torch.compile of the function that calls F.cross_entropy; or use a fused linear cross-entropy, such as
LigerFusedLinearCrossEntropyLoss of Liger Kernel, which never stores all logits."""

[params.least_pct]
default = 3.0
help = "Share of the kernel time of the log-softmax kernels from which they are reported (3: less saves little)"
*/
WITH kernels AS (
    SELECT
        name, total_ns::DOUBLE AS total_ns, calls, kernel_time_pct,
        regexp_matches(name, 'cunn_SoftMax(Forward|Backward).*LogSoftMax') AS is_softmax,
        regexp_matches(name, 'nll_loss_backward') AS is_loss
    FROM _steady_shapes
    WHERE regexp_matches(name, 'cunn_SoftMax(Forward|Backward).*LogSoftMax|nll_loss_backward')
),
loss AS (
    SELECT
        sum(total_ns) FILTER (is_softmax) AS total_ns, sum(calls) FILTER (is_softmax) AS calls,
        sum(kernel_time_pct) FILTER (is_softmax) AS softmax_pct,
        kernel_base_name(arg_max(name, total_ns) FILTER (is_softmax)) AS softmax,
        kernel_base_name(any_value(name) FILTER (is_loss)) AS kernel
    FROM kernels
    HAVING count(*) FILTER (is_loss) > 0 AND sum(kernel_time_pct) FILTER (is_softmax) >= $least_pct
)
SELECT
    least(1.7 * l.total_ns / t.units, t.high_limit_ns) AS recoverable_ns,
    least(0.6 * l.total_ns / t.units, t.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    l.softmax AS place,
    CASE WHEN 1.7 * l.total_ns / t.units > t.high_limit_ns THEN 'the host' END AS bounded_by,
    l.total_ns / t.units AS softmax_ns, l.softmax_pct, l.calls / t.units AS calls, l.kernel
FROM loss AS l, _step_totals AS t
WHERE t.busy_ns > 0.5 * t.wall_ns AND saving_low_ns > 0
