/*
code = "NSI311"
title = "Small values are copied to the GPU one by one"
family = "small-copies"
explains = ["late-host", "start", "wait", "copy", "sync-each-launch"]
meaning = """
Each value of a few bytes takes a copy of its own. A copy costs the host about as much as a launch, and more if it
waits."""
evidence = [
    "{copies:copy|copies} of at most {most_bytes} to the GPU {per}, {total_bytes} together",
    "{waits} of them with a wait",
    "{launches:launch|launches} {per}",
    "the GPU is idle for {idle_ns} of {wall_ns} {per}",
]
skip_if = "The values come from different places and at different times, so they cannot be gathered."
effort = "line"
estimate = """
High: the idle time of the GPU times the share of these copies among the calls of a step, a copy counted as one launch.
Low: a third of it."""
links = ["CUDA C++ Best Practices Guide, Data Transfer Between Host and Device"]
report = "copies"
when = "SELECT 1 FROM memcpys WHERE copy_kind = 'H2D' AND size_bytes <= $max_bytes HAVING count(*) >= $min_copies"

[fix]
any = "Pass values as arguments of the kernels, create constants once before the loop, or gather them in one copy."
pytorch = """
Use Python numbers as they are (x * 0.5 instead of x * torch.tensor(0.5, device="cuda")), create constant tensors once
before the loop, and make one tensor of several values."""
jax = """
Put the loop over the values under one jax.jit, with constants inside it, and pass values that change as one array."""
cupy = "Pass Python numbers as arguments, create constant arrays before the loop, or gather them in one array."
numba = "Pass numbers as kernel arguments instead of arrays of one element."
cuda = "Pass the values as kernel arguments, or gather them in one pinned buffer and copy it once."
openacc = """
Keep the arrays on the GPU (enter data, present), so that no descriptors or scalars are copied for each region."""
openmp = "Keep the data on the GPU (target enter data): scalars are firstprivate, and need no map clause."
kokkos = "Capture the values in the lambda instead of copying each with deep_copy."
julia = "Pass the values as kernel arguments, or gather them in one CuArray."

[params]
max_bytes = [256, "Largest copy that counts as small (256 bytes: a few values)"]
min_copies = [2, "Fewest such copies in a step (2: a single one is the input of the step)"]
min_share = [0.2, "Share of the calls of a step from which these copies are the cause of its idle time (a fifth)"]
max_call_ns = [50000, "Most idle time that one call costs (50 µs: more is other work of the host)"]
*/
WITH copies_of_steps AS (
    SELECT count(*)::DOUBLE AS copies, sum(m.size_bytes)::DOUBLE AS total_bytes, max(m.size_bytes) AS most_bytes
    FROM (
        FROM memcpys WHERE copy_kind = 'H2D' AND size_bytes <= $max_bytes AND coalesce(graph_node_id, 0) = 0
    ) AS m
    ASOF JOIN _steady_windows AS s ON s.process_id = m.process_id AND s.start_ns <= m.start_ns
    WHERE m.start_ns < s.end_ns
),
waits_of_steps AS (
    SELECT count(*)::DOUBLE AS waits
    FROM (FROM waits WHERE copy_kind = 'H2D' AND copy_bytes <= $max_bytes) AS w
    ASOF JOIN _steady_windows AS s ON s.process_id = w.process_id AND s.host_start_ns <= w.start_ns
    WHERE w.start_ns < s.host_end_ns
)
SELECT
    c.copies / (c.copies + t.launch_calls * t.units) AS call_share,
    least(t.idle_ns * call_share, $max_call_ns * c.copies / t.units) AS recoverable_ns,
    0.34 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    c.copies / t.units AS copies, c.most_bytes, c.total_bytes / t.units AS total_bytes,
    CASE WHEN w.waits >= c.copies / 2 THEN w.waits / t.units END AS waits, t.launch_calls AS launches, t.idle_ns,
    t.wall_ns
FROM copies_of_steps AS c, waits_of_steps AS w, _step_totals AS t
WHERE t.has_steps AND c.copies >= $min_copies * t.units AND call_share >= $min_share
