/*
code = "NSI108"
title = "The same short sequence runs many times in a row"
family = "repetition"
overlaps = true
meaning = "The trace does not show whether the repetitions depend on each other. If not, they can run as one."
evidence = [
    [
        "the step may be one of {step_repeats} equal sequences in a row ({kernels})",
        "{kernels} run {repeats} times {per} in a row",
    ],
    [
        """up to {blocks:block} each on {sm_count} SMs: unless each needs the result of the one before, as time steps
        do, one launch with a larger grid, or a batched call, does all of them""",
        """up to {large_blocks:block} each: if they read the same data, one pass over it does all of them, unless each
        needs the result of the one before, as time steps do""",
        "unless each needs the result of the one before, as time steps do, one batched call does all of them",
    ],
]
skip_if = "Each needs the result of the one before, as time steps, tokens and solver iterations do."
effort = "function"
report = "loops"
when = "SELECT 1 FROM _repetitions WHERE is_plain"

[fix]
any = """
Do independent repetitions in one launch, with one more dimension of the grid, or in one pass over data that all of them
read."""
pytorch = """
Give independent repetitions a batch dimension (torch.bmm, torch.vmap), or one pass over data that all of them read."""
jax = "Put independent repetitions under jax.vmap."
cupy = "Do independent repetitions in one call on the whole array (axis=, batched products), or in one RawKernel."

[params]
min_idle = [0.5, "Share of a repetition in which the GPU is idle, from which launches limit it (half)"]
*/
SELECT
    NULL AS recoverable_ns, 100 * share AS wall_pct, NULL AS place,
    -- Below what says that launches, or kernels, limit the step.
    if(idle_ns >= $min_idle * period_ns, 'launch', 'kernels') AS family,
    CASE WHEN is_step THEN repeats END AS step_repeats,
    CASE WHEN NOT is_step THEN repeats END AS repeats,
    kernels, sm_count,
    CASE WHEN blocks < sm_count THEN blocks END AS blocks,
    CASE WHEN blocks >= sm_count AND idle_ns < $min_idle * period_ns THEN blocks END AS large_blocks
FROM _repetitions
WHERE is_plain
    -- The stronger rule is about these (repeated-sequence).
    AND NOT is_compiled AND NOT (idle_ns >= $min_idle * period_ns AND (NOT is_step OR coalesce(blocks <= 1, false)))
ORDER BY share DESC, loop
LIMIT 1
