/*
description = """One row per loop of at most 48 operations without a wait that runs at least 16 times in a step, or as
    the step, and takes 30% of it: fewer repetitions may be the layers of a model, and more operations are rarely those
    of one item. Where no steps were found, the loops that XLA launches, of the whole scope."""
stored = true
needs = "_short_loops"
progress = "repeated sequences"
[columns]
loop = "The loop, as in `loops`"
is_step = "Whether the iterations are the steps"
repeats = "Iterations in a step; in total if the iterations are the steps"
operations = "Operations of an iteration"
period_ns = "Time from the start of an iteration to the start of the next one"
busy_ns = "Time of an iteration in which the GPU is busy"
idle_ns = "Time of an iteration in which the GPU is idle"
filled_ns = """GPU time of an iteration if other work ran on the SMs that its kernels leave free; NULL if a number of
    blocks is unknown"""
share = "Share of the wall time that the iterations take"
graph_share = "Share of their GPU time in CUDA graphs"
kernel = "The kernel that takes the longest; NULL for a graph"
kernels = "The first kernels of an iteration, in order, each once, and a CUDA graph that is traced as a whole"
blocks = "Most blocks of one of these kernels; NULL if unknown"
sm_count = "SMs of the GPU"
has_layers = "Whether some kernels are those of a layer: products, attention, norms, communication"
has_blocks = "Whether some are those of a block of a model: attention, norms, convolutions, communication"
is_plain = "Whether an iteration has at most 8 operations, none of them of a layer"
is_compiled = "Whether XLA launches the iterations from one loop of its own"
*/
-- The grid that most launches of a name have.
WITH grids AS (
    SELECT name_id, max_by(blocks_count, calls) AS blocks, max_by(sm_count, calls) AS sm_count
    FROM launch_shapes GROUP BY name_id
),
-- The names of an iteration, in order.
names AS (
    SELECT loop, array_to_string(list(kernel ORDER BY place)[:4], ', ') AS kernels
    FROM (
        SELECT o.loop, coalesce(kernel_base_name(n.name), 'a CUDA graph') AS kernel, min(o.position) AS place
        FROM loop_operations AS o LEFT JOIN kernel_names AS n USING (name_id)
        WHERE o.kind IN ('kernel', 'graph')
        GROUP BY ALL
    )
    GROUP BY loop
),
contents AS (
    SELECT
        o.loop,
        -- A function of CUTLASS is called Kernel; its argument says what it computes.
        max_by(
            coalesce(nullif(regexp_extract(n.name, '\bKernel2?<(cutlass_\w+)', 1), ''), kernel_base_name(n.name)),
            o.duration_ns
        ) AS kernel,
        if(bool_and(g.blocks IS NOT NULL), max(g.blocks), NULL) AS blocks, max(g.sm_count) AS sm_count,
        if(
            bool_and(g.blocks IS NOT NULL),
            sum(o.duration_ns * least(1, g.blocks / g.sm_count)) / nullif(sum(o.duration_ns), 0), NULL
        ) AS filled_share,
        coalesce(bool_or(n.family IN ('gemm', 'attention', 'norm', 'rope', 'embedding', 'comm', 'conv')), false)
            AS has_layers,
        coalesce(bool_or(n.family IN ('attention', 'norm', 'rope', 'embedding', 'comm', 'conv')), false) AS has_blocks
    FROM loop_operations AS o
    LEFT JOIN kernel_names AS n USING (name_id)
    LEFT JOIN grids AS g USING (name_id)
    WHERE o.loop IN (SELECT loop FROM _short_loops) AND o.kind IN ('kernel', 'graph')
    GROUP BY o.loop
)
SELECT
    l.loop, s.is_step, round(s.repeats) AS repeats, l.operations, l.period_ns, l.gpu_busy_ns AS busy_ns,
    l.gpu_idle_ns AS idle_ns, l.gpu_busy_ns * c.filled_share AS filled_ns,
    s.share, l.graph_share, c.kernel, n.kernels, c.blocks, c.sm_count, c.has_layers, c.has_blocks,
    l.operations <= 8 AND NOT c.has_layers AS is_plain,
    EXISTS (
        FROM nvtx_ranges AS r
        WHERE r.process_id = l.process_id AND r.name LIKE 'Thunk:#%hlo_op=while%'
            AND r.end_ns - r.start_ns >= 0.5 * l.period_ns * l.iterations AND r.start_ns <= l.start_ns + l.period_ns
            AND r.end_ns >= l.start_ns + 0.5 * l.period_ns * l.iterations
    ) AS is_compiled
FROM _short_loops AS s
JOIN loops AS l USING (loop)
JOIN contents AS c USING (loop)
LEFT JOIN names AS n USING (loop)
WHERE s.has_steps OR is_compiled;
