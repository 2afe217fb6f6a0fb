/*
code = "NSI107"
title = "A short sequence of operations is launched many times"
family = "repetition"
symptom = "late-host"
meaning = """
The same few operations run again and again, and each leaves most of the GPU idle. If they work on different data, one
call with a batch does all of them."""
evidence = [
    [
        "{compiled_repeats} iterations of compiled loops in a row, of {operations:operation} each: {period_ns} each",
        """each step is one of {step_repeats} equal sequences in a row, of {operations:operation} each ({kernels}), with
        {blocks:block} on a GPU of {sm_count} SMs: {period_ns} each""",
        "the same {operations:operation} {repeats} times {per}, most time in {kernel}: {period_ns} each",
    ],
    "the GPU is busy for {busy_ns} of each",
    "{filled_pct} of its SMs have a block meanwhile",
]
skip_if = """
Each repetition needs the result of the one before, and is not linear in it; then only a CUDA graph, or one kernel with
the loop inside, helps."""
effort = "function"
estimate = """
High: the idle time of the GPU in all repetitions but one, and the time in which SMs had no block. Low: 40% of the idle
time, because the profiler makes launches take up to twice as long; nothing for a loop that a
compiler made, and for repetitions that keep the GPU busy."""
links = ["CUDA C++ Best Practices Guide, Concurrent Kernel Execution"]
report = "loops"
when = "SELECT 1 FROM _repetitions"

[fix.repeated]
any = """
Do all repetitions in one call: a library's batched interface, or one more dimension of the grid, with a block or more
for each of them."""
pytorch = """
Replace the loop in Python by one operation with a batch dimension (torch.bmm, torch.linalg with a batch,
torch.vmap, torch.func.stack_module_state for networks); launch a kernel of your own once, with one more dimension of
the grid."""
jax = "Replace the loop in Python by jax.vmap; where the repetitions depend on each other, by jax.lax.scan in one jit."
cupy = """
Replace the loop in Python by one call on the whole array: axis= of cupy.fft, reductions and sorts, batched products; a
kernel of your own with one more dimension of the grid."""
numba = "Give the kernel one more grid dimension for what the loop counts."
cuda = "Use the batched or strided interface of the library, or give the kernel one more grid dimension."

[fix.compiled]
any = "Batch the iterations: compute all of them at once, or many in each iteration."
jax = """
Replace jax.lax.map, or a jax.lax.scan that carries nothing, by jax.vmap (or give lax.map a batch_size). Where each
iteration needs the one before: a linear recurrence is a parallel scan (jax.lax.associative_scan); else give the scan
unroll=, so that XLA fuses several."""

[params]
max_operations = [8,
    "Most operations in a repetition that has a norm, a convolution or the like (8: a layer of a model has more)"]
min_idle = [0.5, "Share of a repetition in which the GPU is idle, from which launches limit it (half)"]
max_operation_ns = [20000,
    "Longest mean time of an operation on the GPU (20 µs: a longer one has work for the whole GPU)"]
max_filled = [0.25,
    "Share of the SMs with a block up to which a repetition on a busy GPU leaves most of it idle (a quarter)"]
max_compiled_ns = [50000, "Longest iteration of a compiled loop (50 µs: a longer one has work for the whole GPU)"]
*/
WITH repetitions AS (
    SELECT
        *, idle_ns >= $min_idle * period_ns AND busy_ns <= $max_operation_ns * operations AS is_launched_late,
        coalesce(filled_ns <= $max_filled * busy_ns, false) AS is_small,
        is_compiled AND period_ns <= $max_compiled_ns AS is_compiled_loop
    FROM _repetitions
    WHERE (
        NOT has_blocks
        -- Norms that have gradients are those of layers. A layer needs the one before it.
        OR operations <= $max_operations
        AND NOT EXISTS (FROM _steady_shapes WHERE regexp_matches(name, '(?i)norm_(?:grad|backward)'))
    )
        -- The step itself may be a time step or a token. One block is one item, or a loop that fits into a kernel.
        AND (NOT is_step OR is_compiled OR coalesce(blocks <= 1, false))
),
savings AS (
    SELECT
        *, if(is_step, 1, repeats) * (1 - 1 / repeats) AS count, if(is_launched_late, idle_ns, 0) AS late_ns,
        CASE WHEN is_compiled_loop THEN period_ns ELSE late_ns + if(is_small, busy_ns - filled_ns, 0) END AS gone_ns
    FROM repetitions
    WHERE is_compiled_loop OR graph_share < 0.5 AND (is_launched_late OR is_small AND NOT is_step AND NOT has_layers)
)
SELECT
    least(s.count * s.gone_ns, t.wall_ns) AS recoverable_ns,
    if(s.is_compiled_loop, 0, least(0.4 * s.count * s.late_ns, recoverable_ns)) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    -- If most of the idle time is between their launches, what the CPU does there launches them.
    [
        'launch-bound', 'many-launches', 'slow-launches', 'graph-candidate', 'small-grid', 'one-block', 'fusion',
        'repeated-step', 'critical-path', 'hot-kernels'
    ] || if(2 * s.count * s.late_ns >= t.idle_ns, ['cpu-work', 'start'], []) AS explains,
    if(s.is_compiled_loop, 'compiled', 'repeated') AS cure_case,
    s.operations, s.period_ns, s.busy_ns, s.kernel, s.kernels, s.sm_count,
    CASE WHEN s.is_compiled_loop THEN s.repeats END AS compiled_repeats,
    CASE WHEN s.is_step AND NOT s.is_compiled_loop THEN s.repeats END AS step_repeats,
    CASE WHEN NOT s.is_step AND NOT s.is_compiled_loop THEN s.repeats END AS repeats,
    CASE WHEN s.is_step THEN s.blocks END AS blocks,
    CASE WHEN s.is_small AND NOT s.is_launched_late THEN 100 * s.filled_ns / s.busy_ns END AS filled_pct
FROM savings AS s, _step_totals AS t
ORDER BY recoverable_ns DESC, s.loop
LIMIT 1
