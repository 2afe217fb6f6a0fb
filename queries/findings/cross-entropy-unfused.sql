/*
code = "NSI418"
title = "The loss writes the logits of a large vocabulary several times"
family = "loss"
meaning = """
Softmax, loss and their backward pass are separate kernels. Each reads or writes a matrix with one row for each token
and one column for each class."""
evidence = [
    [
        """{?is_written_out}{loss_ns} {per} ({loss_pct} of kernel time) in {calls:kernel} as long as the exponential of
        the matrix, or nearly so; the logarithm and the choice of a value are of one element per row""",
        "{loss_ns} {per} ({loss_pct} of kernel time) in {calls:log-softmax kernel}, forward and backward",
    ],
    "the loss itself is another kernel, {kernel}",
]
skip_if = "The program needs the log-probabilities of all classes themselves."
effort = "line"
numerics = "rounding"
estimate = """
Log-softmax kernels: 60% of their time, to 170%, because conversions and fills of the matrix around them go too. Written
out: the time of these kernels without six passes (low; at least a third) or one pass (high) of a fused loss, each as
long as the exponential."""
links = ["PyTorch documentation, torch.compile"]
report = "top"
when = "SELECT 1 FROM _step_totals WHERE busy_ns > 0.5 * wall_ns"

[fix]
any = "Fuse the last matrix product, the softmax and the loss, or compute the loss in chunks of tokens."
pytorch = """
Compile the loss: torch.compile of the function that calls F.cross_entropy; or use a fused linear cross-entropy, such as
LigerFusedLinearCrossEntropyLoss of Liger Kernel, which never stores all logits."""

[params]
min_pct = [3.0, "Share of the kernel time of these kernels from which they are reported (3: less saves little)"]
min_pass_ns = [50000, "Shortest pass over a large matrix (50 µs: 100 MB at 2 TB/s)"]
min_passes = [5, "Fewest passes of a loss that is written out (5: the kernels of a framework take fewer)"]
*/
WITH kernels AS (
    SELECT *, regexp_matches(name, 'cunn_SoftMax(Forward|Backward).*LogSoftMax') AS is_softmax FROM _steady_shapes
),
-- A softmax that is written out: the exponential of the matrix, the logarithm of a sum of each row, one value of each.
written_out AS (
    SELECT
        arg_max(calls, avg_ns) FILTER (regexp_matches(name, '[^a-z]exp_kernel')) AS losses,
        max(avg_ns) FILTER (regexp_matches(name, '[^a-z]exp_kernel')) AS pass_ns,
        min(avg_ns) FILTER (regexp_matches(name, '[^a-z]log_kernel')) AS log_ns,
        min(avg_ns) FILTER (name LIKE '%_scatter_gather_elementwise_kernel%') AS gather_ns
    FROM kernels
    HAVING pass_ns >= $min_pass_ns AND log_ns <= 0.1 * pass_ns AND gather_ns <= 0.1 * pass_ns
),
losses AS (
    SELECT
        sum(total_ns)::DOUBLE AS total_ns, sum(calls) AS calls, sum(kernel_time_pct) AS loss_pct,
        arg_max(name, total_ns) AS place,
        (SELECT kernel_base_name(any_value(name)) FROM kernels WHERE name LIKE '%nll_loss_backward%') AS kernel,
        0.6 * sum(total_ns) AS low_ns, 1.7 * sum(total_ns) AS high_ns, false AS is_written_out
    FROM kernels
    WHERE is_softmax
    HAVING kernel IS NOT NULL
    UNION ALL
    SELECT
        sum(k.total_ns)::DOUBLE AS all_ns, sum(k.calls), sum(k.kernel_time_pct), arg_max(k.name, k.total_ns), NULL,
        greatest(all_ns - 6 * any_value(w.losses * w.pass_ns), all_ns / 3),
        all_ns - any_value(w.losses * w.pass_ns), true
    FROM kernels AS k, written_out AS w
    WHERE k.family IN ('elementwise', 'reduction', 'copy/cast', 'memory') AND k.avg_ns >= 0.4 * w.pass_ns
    HAVING sum(k.calls) >= $min_passes * any_value(w.losses)
)
SELECT
    least(l.high_ns / t.units, limits.high_limit_ns) AS recoverable_ns,
    least(l.low_ns / t.units, limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    kernel_base_name(l.place) AS place,
    CASE WHEN l.high_ns / t.units > limits.high_limit_ns THEN 'the host' END AS bounded_by,
    l.is_written_out, l.total_ns / t.units AS loss_ns, l.loss_pct, l.calls / t.units AS calls, l.kernel,
    CASE WHEN l.is_written_out THEN ['kernel-time', 'fusion'] ELSE ['kernel-time'] END AS explains
FROM losses AS l, _step_totals AS t, _step_limits AS limits
WHERE l.loss_pct >= $min_pct AND saving_low_ns > 0
ORDER BY recoverable_ns DESC
LIMIT 1
