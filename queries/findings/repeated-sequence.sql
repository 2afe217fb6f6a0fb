/*
code = "NSI107"
title = "A short sequence of operations is launched many times in a step"
family = "repetition"
symptom = "late-host"
explains = ["launch-bound", "many-launches", "slow-launches", "graph-candidate", "small-grid", "fusion"]
meaning = """
A step repeats the same few operations many times, and the GPU waits for the launch of each. If they work on different
data, one call with a batch does all of them."""
evidence = [
    "the same {operations:operation} {repeats} times {per}, most time in {kernel}: {period_ns} each",
    "the GPU is busy for {busy_ns} of each",
]
skip_if = """
Each repetition needs the result of the one before; then only a CUDA graph, or one kernel with the loop inside,
helps."""
effort = "function"
estimate = """
High: the idle time of the GPU in all repetitions but one. Low: 40% of it, because the profiler makes launches take up
to twice as long."""
links = ["CUDA C++ Best Practices Guide, Concurrent Kernel Execution"]
report = "loops"
when = "SELECT 1 FROM loops WHERE iterations >= $min_repeats AND operations <= $max_operations"

[fix]
any = "Do all repetitions in one call: a library's batched interface, or one more dimension of the grid."
pytorch = """
Replace the loop in Python by one operation with a batch dimension (torch.bmm, torch.linalg with a batch,
torch.vmap)."""
jax = "Replace the loop in Python by jax.vmap; where the repetitions depend on each other, by jax.lax.scan in one jit."
cupy = """
Replace the loop in Python by one call on the whole array: axis= of cupy.fft, reductions and sorts, batched products."""
numba = "Give the kernel one more grid dimension for what the loop counts."
cuda = "Use the batched or strided interface of the library, or give the kernel one more grid dimension."

[params.min_repeats]
default = 16
help = "Fewest repetitions in a step (16: fewer may be the layers of a model)"

[params.max_operations]
default = 8
help = "Most operations in a repetition (8: a layer of a model has more)"

[params.min_idle]
default = 0.5
help = "Share of a repetition in which the GPU is idle, from which launches limit it (half)"

[params.max_operation_ns]
default = 20000
help = "Longest mean time of an operation on the GPU (20 µs: a longer one has work for the whole GPU)"

[params.min_share]
default = 0.3
help = "Share of the step that the repetitions take, at least (0.3: less is not what limits the step)"
*/
WITH repetitions AS (
    SELECT
        l.loop, l.operations, l.period_ns, l.gpu_busy_ns AS busy_ns, l.gpu_idle_ns, l.process_id,
        round(l.iterations / m.step_count) AS repeats, t.wall_ns
    FROM loops AS l
    JOIN step_method AS m ON m.process_id = l.process_id AND m.loop IS DISTINCT FROM l.loop
    CROSS JOIN _step_totals AS t
    WHERE t.has_steps AND l.iterations >= $min_repeats * m.step_count AND l.operations <= $max_operations
        AND l.launches >= 1 AND l.graph_share < 0.5 AND l.gpu_idle_ns >= $min_idle * l.period_ns
        AND l.gpu_busy_ns <= $max_operation_ns * l.operations
        AND l.iterations * l.period_ns >= $min_share * m.step_count * t.wall_ns
)
SELECT
    least(r.repeats * r.gpu_idle_ns * (1 - 1 / r.repeats), r.wall_ns) AS recoverable_ns,
    0.4 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / r.wall_ns AS wall_pct,
    NULL AS place,
    r.operations, r.repeats, r.period_ns, r.busy_ns,
    (
        SELECT arg_max(kernel_base_name(n.name), o.duration_ns)
        FROM loop_operations AS o JOIN kernel_names AS n ON n.name_id = o.name_id
        WHERE o.loop = r.loop
    ) AS kernel
FROM repetitions AS r
-- A repetition with a wait is limited by the wait, which has rules of its own.
WHERE NOT EXISTS (FROM loop_operations AS o WHERE o.loop = r.loop AND o.kind IN ('wait', 'loop'))
ORDER BY recoverable_ns DESC, r.loop
LIMIT 1
