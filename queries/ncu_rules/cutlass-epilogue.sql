/*
title = "An element-wise kernel follows the matrix product"
evidence = ["duration_ns", "next_kernel", "next_duration_ns"]

[actions]
cutlass = """
Move the bias and the activation into the epilogue (LinearCombinationRelu, an epilogue visitor tree): the output is
then written only once."""
*/
-- The rule needs a profile in which the two launches follow each other.
SELECT launch, duration_ns, next_kernel, next_duration_ns
FROM (
    SELECT
        *,
        lead(kernel) OVER profiled AS next_kernel,
        lead(family) OVER profiled AS next_family,
        lead(duration_ns) OVER profiled AS next_duration_ns,
        lead(ncu_id) OVER profiled AS next_id
    FROM ncu_kernels
    WINDOW profiled AS (PARTITION BY report, process_id ORDER BY ncu_id, launch)
)
WHERE family = 'gemm' AND next_id = ncu_id + 1 AND next_family IN ('elementwise', 'activation')
ORDER BY launch
