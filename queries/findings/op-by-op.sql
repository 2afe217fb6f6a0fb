/*
code = "NSI117"
title = "Operations are compiled and launched one by one"
family = "op-by-op"
explains = ["late-host", "start", "fusion"]
meaning = """
Each operation is a module of its own, dispatched from Python. Compiled as one function, the step is one call, and its
operations are fused."""
evidence = [
    "{modules:module} are dispatched {per}, with {launches_each:launch|launches} each on average",
    "the GPU is idle for {idle_ns} of {wall_ns}",
]
skip_if = "Python has to see the values between the operations."
effort = "function"
numerics = "rounding"
estimate = "High: the idle time of the GPU. Low: 45% of it."
links = ["JAX documentation, Just-in-time compilation"]
report = "nvtx"
when = "SELECT 1 FROM frameworks WHERE framework = 'jax' AND is_program"

[fix]
any = "Compile the whole step as one function."
jax = "Put the whole step under one jax.jit; keep Python loops out of it with jax.lax.scan."

[params]
min_modules = [20, "Fewest modules in a step (20: a jitted step has one or a few)"]
*/
WITH modules AS (
    SELECT count(*)::DOUBLE AS modules
    FROM (FROM nvtx_ranges WHERE name LIKE 'XlaModule:%') AS r
    ASOF JOIN _steady_windows AS s ON s.process_id = r.process_id AND s.host_start_ns <= r.start_ns
    WHERE r.start_ns < s.host_end_ns
)
SELECT
    t.idle_ns AS recoverable_ns,
    0.45 * t.idle_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    m.modules / t.units AS modules, t.launch_calls * t.units / m.modules AS launches_each, t.idle_ns, t.wall_ns
FROM modules AS m, _step_totals AS t
WHERE t.has_steps AND m.modules >= $min_modules * t.units
