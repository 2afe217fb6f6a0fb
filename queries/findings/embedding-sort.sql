/*
code = "NSI419"
title = "The gradient of an embedding table is summed by sorting"
family = "embedding"
explains = ["kernel-time"]
meaning = """
The backward pass sorts the indices and sums the gradients of equal ones in two passes. Where few indices are equal,
atomic additions are faster."""
evidence = [
    """{backward_ns} {per} ({backward_pct} of kernel time) in {calls:kernel that sums|kernels that sum} gradients of
    rows""",
    "{sort_ns} of it in {sorts:sort}",
]
skip_if = """
Results must be the same in each run, since atomic additions come in any order; or a few rows get most of the
gradients."""
effort = "line"
numerics = "rounding"
estimate = "40 to 75% of the time of these kernels. Measured on an H100 with random indices: 59 to 69%."
links = ["PyTorch documentation, torch.nn.Embedding"]
report = "top"
when = "SELECT 1 FROM _step_totals WHERE busy_ns > 0.5 * wall_ns"

[fix]
any = "Add the gradients of the rows with atomic additions instead of sorting the indices."
pytorch = """
Look the rows up with weight.index_select(0, indices.flatten()), whose backward pass adds with atomics; or compile the
model with torch.compile."""

[params]
min_pct = [2.0, "Share of the kernel time of these kernels from which they are reported (2: less saves little)"]
*/
WITH kernels AS (
    SELECT
        total_ns::DOUBLE AS total_ns, calls, kernel_time_pct, kernel_base_name(name) AS kernel,
        regexp_matches(name, 'RadixSort') AS is_sort,
        regexp_matches(name, 'RadixSortExclusiveSum|RadixSortSingleTile') AS is_single_of_sort,
        regexp_matches(name, 'compute_grad_weight') AS is_single_of_backward
    FROM _steady_shapes
    WHERE regexp_matches(name, 'RadixSort|compute_grad_weight|sum_and_scatter|krn_partial|compute_num_of_partial')
),
counts AS (
    SELECT
        *,
        -- Other parts of the program may sort too: then its sorts are not counted.
        NOT is_sort OR sum(calls) FILTER (is_single_of_sort) OVER () = sum(calls) FILTER (is_single_of_backward) OVER ()
            AS is_counted
    FROM kernels
),
backward AS (
    SELECT
        sum(total_ns) AS total_ns, sum(calls) AS calls, sum(kernel_time_pct) AS backward_pct,
        sum(total_ns) FILTER (is_sort) AS sort_ns, sum(calls) FILTER (is_single_of_sort) AS sorts,
        arg_max(kernel, total_ns) FILTER (NOT is_sort) AS kernel
    FROM counts
    WHERE is_counted
    HAVING count(*) FILTER (is_single_of_backward) > 0 AND sum(kernel_time_pct) >= $min_pct
)
SELECT
    least(0.75 * b.total_ns / t.units, limits.high_limit_ns) AS recoverable_ns,
    least(0.4 * b.total_ns / t.units, limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    b.kernel AS place,
    CASE WHEN 0.75 * b.total_ns / t.units > limits.high_limit_ns THEN 'the host' END AS bounded_by,
    b.total_ns / t.units AS backward_ns, b.backward_pct, b.calls / t.units AS calls,
    b.sort_ns / t.units AS sort_ns, b.sorts / t.units AS sorts
FROM backward AS b, _step_totals AS t, _step_limits AS limits
WHERE saving_low_ns > 0
