/*
description = """NVTX ranges of PyTorch whose text has the sizes of a matrix product or of attention, with the
    operations and elements of these sizes."""
[columns]
start_ns = "When the range was opened"
end_ns = "When the range was closed; NULL when the capture ended first"
family = "Family of the kernel that does it, as in `kernel_names`: gemm or attention"
flop_count = "Operations: 2 M N K of a matrix product, 4 B H S S D of attention that is not causal"
elements_count = "Elements of the operands and the result, each once"
*/
-- With emit_nvtx(record_shapes=True), PyTorch writes the sizes of an operation's tensors into its range:
--     aten::addmm, seq = 12, sizes = [[4096], [8, 4096], [4096, 4096], [], []]
-- Before PyTorch 1.6, without aten::. Scalars have an empty size. The range has nothing else about the call, not even
-- whether attention is causal.
WITH range_sizes AS (
    SELECT
        name,
        regexp_extract(name, '^(?:aten::)?(\w+), ', 1) AS op,
        try_cast(regexp_extract(name, 'sizes = (\[\[[^=]*\])', 1) AS BIGINT[][]) AS sizes
    FROM (SELECT DISTINCT name FROM nvtx_ranges WHERE contains(name, 'sizes = [['))
),
-- A matrix product multiplies A of … x M x K with B of … x K x N. A vector is one row or one column; linear has B
-- transposed. The calculation is split into several CTEs: DuckDB plans a column expression again for each column of the
-- same SELECT that names it.
factors AS (
    SELECT name, op, CASE WHEN op IN ('addmm', 'baddbmm', '_addmm_activation') THEN sizes[2:3] ELSE sizes[1:2] END AS ab
    FROM range_sizes
    WHERE op IN ('mm', 'bmm', 'matmul', 'linear', '_scaled_mm', '_int_mm', 'addmm', 'baddbmm', '_addmm_activation')
),
matrices AS (
    SELECT
        name,
        CASE WHEN len(ab[1]) = 1 THEN [1] || ab[1] ELSE ab[1] END AS a,
        CASE
            WHEN op = 'linear' THEN [ab[2][-1], coalesce(ab[2][-2], 1)] WHEN len(ab[2]) = 1 THEN ab[2] || [1] ELSE ab[2]
        END AS b
    FROM factors
),
products AS (
    SELECT
        name, a, b,
        list_product([1.0] || [
            greatest(coalesce(x[1], 1), coalesce(x[2], 1)) FOR x IN list_zip(list_reverse(a[:-3]), list_reverse(b[:-3]))
        ]) AS batch
    FROM matrices
),
work_sizes AS (
    SELECT
        name, 'gemm' AS family,
        2.0 * batch * a[-2] * a[-1] * b[-1] AS flop_count,
        list_product(a) + list_product(b) + batch * a[-2] * b[-1] AS elements_count
    FROM products
    WHERE a[-1] = b[-2]
    UNION ALL
    SELECT
        name, 'attention',
        2.0 * list_product(sizes[1][:-2]) * sizes[2][-2] * (sizes[1][-1] + sizes[3][-1]),
        list_product(sizes[1]) + list_product(sizes[2]) + list_product(sizes[3])
            + list_product(sizes[1][:-2]) * sizes[3][-1]
    FROM range_sizes
    WHERE regexp_full_match(op, 'scaled_dot_product_attention|_scaled_dot_product_(?:flash|efficient|cudnn)_attention')
        AND len(sizes[1]) >= 3 AND sizes[1][-1] = sizes[2][-1] AND sizes[2][-2] = sizes[3][-2]
)
SELECT r.process_id, r.thread_id, r.start_ns, r.end_ns, k.family, k.flop_count, k.elements_count
FROM nvtx_ranges AS r
JOIN work_sizes AS k USING (name)
WHERE r.style = 'push/pop' AND k.flop_count > 0;
