/*
code = "NSI109"
title = "Dot products and updates run for one vector at a time"
family = "vectors-one-by-one"
explains = [
    "repeated-sequence", "repeated-step", "late-host", "start", "graph-candidate", "fusion", "scalar-read-backs",
    "small-copies", "kernel-time", "small-grid", "one-block", "wait",
]
meaning = """
A dot product with one vector and an update by it (level 1 of BLAS) read whole vectors for one number. For all
vectors together, both are matrix-vector products (level 2): they read each vector once, in a few kernels."""
evidence = [
    [
        "each step is one of {step_repeats} dot products and updates by one vector in a row ({kernels})",
        """a dot product and an update by one vector ({kernels}) repeat {repeats} times {per}, with nothing else between
        them""",
    ],
    "{period_ns} each, of which the GPU is busy for {busy_ns}",
]
skip_if = """
A step that is not linear stands between the dot product and the update, such as a threshold (coordinate descent); then
update blocks of coordinates."""
effort = "function"
numerics = "rounding"
estimate = """
High: the idle time of the GPU in all repetitions, and nine tenths of its busy time there. Low: 40% of the idle time,
because the profiler makes launches take up to twice as long, and a fifth of the busy time: classical Gram-Schmidt, done
twice for its accuracy, reads 4 vectors instead of 5."""
links = ["cuBLAS documentation, cublas<t>gemv()"]
report = "loops"
when = "SELECT 1 FROM kernel_constructs WHERE construct = 'dot product of vectors' LIMIT 1"

[fix]
any = """
Keep the vectors as the columns of one matrix V, and treat all of them at once: h = V'w, then w = w - V h, two
matrix-vector products (gemv) for each new vector. Where this is Gram-Schmidt, do it twice for accuracy; where all
vectors are known before, use matrix products of blocks or a QR factorization."""
cuda = """
Keep the vectors as the columns of one matrix V, and call cublas<t>gemv twice for each new vector: h = V'w with its
transpose, then w = w - V h. Where this is Gram-Schmidt, do it twice for accuracy; where all vectors are known before,
use cublas<t>gemm on blocks of vectors, or cusolverDn<t>geqrf."""
pytorch = """
Keep the vectors as the columns of one tensor V, and treat all of them at once: w = w - V @ (V.T @ w). Where this is
Gram-Schmidt, do it twice for accuracy; where all vectors are known before, call torch.linalg.qr."""
cupy = """
Keep the vectors as the columns of one array V, and treat all of them at once: w -= V @ (V.T @ w). Where this is
Gram-Schmidt, do it twice for accuracy; where all vectors are known before, call cupy.linalg.qr."""
julia = """
Keep the vectors as the columns of one CuMatrix V, and treat all of them at once: mul!(h, V', w), then
mul!(w, V, h, -1, 1)."""

[params]
min_repeats = [16, "Fewest repetitions in a step (16: fewer vectors gain little)"]
most_updates = [2, "Most other kernels in a repetition (2: a product and a difference; a solver's iteration has more)"]
most_update_share = [3.0,
    "Most time of the update in times of a dot product (3: two kernels pass over six vectors, the product over two)"]
min_share = [0.1, "Share of a step that the repetitions take (a tenth)"]
*/
WITH vector_loops AS (
    SELECT
        o.loop, sum(o.repeats) FILTER (contains(n.name, 'dot_kernel')) AS dots,
        coalesce(sum(o.repeats) FILTER (c.construct IS NULL AND o.kind = 'kernel'), 0) AS own_kernels,
        own_kernels + coalesce(sum(o.repeats) FILTER (
            c.construct = 'vector update' OR c.construct LIKE '%elementwise operation%'
        ), 0) AS updates,
        sum(o.repeats) FILTER (o.kind IN ('kernel', 'loop', 'graph')) AS all_count,
        sum(o.duration_ns) FILTER (c.construct = 'dot product of vectors') AS dot_ns,
        sum(o.duration_ns) FILTER (o.kind = 'kernel') - dot_ns AS update_ns,
        string_agg(kernel_base_name(n.name), ', ' ORDER BY o.position) AS kernels
    FROM loop_operations AS o
    LEFT JOIN kernel_names AS n USING (name_id)
    LEFT JOIN kernel_constructs AS c USING (name_id)
    GROUP BY o.loop
    -- A dot product is one kernel or two. A kernel that takes longer than it may be a product with a sparse matrix.
    HAVING dots = 1 AND updates BETWEEN 1 AND $most_updates AND own_kernels <= 1 AND all_count - updates BETWEEN 1 AND 2
        AND update_ns <= $most_update_share * dot_ns
)
SELECT
    m.loop IS NOT DISTINCT FROM l.loop AS is_step, l.iterations / if(is_step, 1, m.step_count) AS all_repeats,
    if(is_step, 1, all_repeats) * (1 - 1 / all_repeats) AS count,
    least(count * (l.gpu_idle_ns + 0.9 * l.gpu_busy_ns), t.wall_ns) AS recoverable_ns,
    least(count * (0.4 * l.gpu_idle_ns + 0.2 * l.gpu_busy_ns), recoverable_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    CASE WHEN is_step THEN all_repeats END AS step_repeats, CASE WHEN NOT is_step THEN all_repeats END AS repeats,
    v.kernels, l.period_ns, l.gpu_busy_ns AS busy_ns
FROM vector_loops AS v
JOIN loops AS l USING (loop)
JOIN step_method AS m ON m.process_id = l.process_id AND m.step_count > 0
CROSS JOIN _step_totals AS t
WHERE t.has_steps AND all_repeats >= $min_repeats
    AND least(1, if(is_step, 1, all_repeats) * l.period_ns / t.wall_ns) >= $min_share
ORDER BY recoverable_ns DESC, l.loop
LIMIT 1
