-- PyTorch writes the sizes of an operation's tensors into its range where it is asked to
-- (emit_nvtx(record_shapes=True)):
--     aten::addmm, seq = 12, sizes = [[4096], [8, 4096], [4096, 4096], [], []]
-- Before 1.6 without aten::. Scalars have an empty size. Nothing else of the call is told, nor whether attention is
-- causal.
CREATE VIEW sized_ranges AS
WITH named AS (
    SELECT
        name,
        regexp_extract(name, '^(?:aten::)?(\w+), ', 1) AS op,
        try_cast(regexp_extract(name, 'sizes = (\[\[[^=]*\])', 1) AS BIGINT[][]) AS sizes
    FROM (SELECT DISTINCT name FROM nvtx_ranges WHERE contains(name, 'sizes = [['))
),
-- A matrix product is A of … x M x K by B of … x K x N; a vector is one row or one column, and linear has B transposed.
-- In steps: a column that names one beside it is planned as often as it is named.
factors AS (
    SELECT name, op, CASE WHEN op IN ('addmm', 'baddbmm', '_addmm_activation') THEN sizes[2:3] ELSE sizes[1:2] END AS ab
    FROM named
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
known AS (
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
    FROM named
    WHERE regexp_full_match(op, 'scaled_dot_product_attention|_scaled_dot_product_(?:flash|efficient|cudnn)_attention')
        AND len(sizes[1]) >= 3 AND sizes[1][-1] = sizes[2][-1] AND sizes[2][-2] = sizes[3][-2]
)
SELECT r.process_id, r.thread_id, r.start_ns, r.end_ns, k.family, k.flop_count, k.elements_count
FROM nvtx_ranges AS r
JOIN known AS k USING (name)
WHERE r.style = 'push/pop' AND k.flop_count > 0;

COMMENT ON VIEW sized_ranges IS
    'NVTX ranges of PyTorch whose text has the sizes of a matrix product or of attention, and what these sizes come '
    'to.';
COMMENT ON COLUMN sized_ranges.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN sized_ranges.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN sized_ranges.start_ns IS 'When the range was opened';
COMMENT ON COLUMN sized_ranges.end_ns IS 'When it was closed; NULL when the capture ended first';
COMMENT ON COLUMN sized_ranges.family IS 'Family of the kernel that does it, as in `kernel_names`: gemm or attention';
COMMENT ON COLUMN sized_ranges.flop_count IS
    'Operations: 2 M N K of a matrix product, 4 B H S S D of attention that is not causal';
COMMENT ON COLUMN sized_ranges.elements_count IS 'Elements of the operands and the result, each once';
