/*
code = "NSI312"
title = "Many small copies within the GPU's memory"
family = "tiny-d2d"
explains = ["late-host", "start", "copy"]
meaning = """
Each copy moves a few KB from one place of the GPU's memory to another. It takes a call of the host and a few
microseconds, whatever its size; one kernel could move them all."""
evidence = [
    "{copies:copy|copies} within the GPU's memory {per} of {mean_bytes} on average, {total_bytes} together",
    "{launches:launch|launches} {per}",
    "the GPU is idle for {idle_ns} of {wall_ns} {per}, and copies for {copy_ns}",
]
skip_if = "The sources and targets are not known before the copies begin."
effort = "function"
estimate = """
High: the time of these copies without the time that their bytes need, and the idle time of the GPU times the share of
these copies among the calls of a step. Low: 40% of it."""
links = ["CUDA C++ Best Practices Guide, Data Transfer Between Host and Device"]
report = "copies"
when = "SELECT 1 FROM memcpys WHERE copy_kind = 'D2D' AND size_bytes <= $max_bytes HAVING count(*) >= $min_copies"

[fix]
any = "Copy with one kernel, or avoid the copies: write the results where they are needed."
pytorch = """
Copy all tensors in one call (torch._foreach_copy_, or torch.cat with out=), or let the tensors be views of one
buffer."""
jax = "Put the updates under one jax.jit with donated arguments (donate_argnums), so that buffers are reused in place."
cupy = "Copy with one kernel: cupy.concatenate with out=, indexing with an array, or a RawKernel."
cuda = """
Copy with one kernel over a list of sources and targets (cub::DeviceMemcpy::Batched), with cudaMemcpy2DAsync where rows
have a fixed pitch, or write the results where they are needed."""
kokkos = "Copy with one parallel_for instead of a deep_copy of each subview."
julia = "Copy with one kernel, or use views instead of copies."

[params]
max_bytes = [65536, "Largest copy that counts as small (64 KiB: the GPU moves it faster than the host calls)"]
min_copies = [16, "Fewest such copies in a step (16: fewer save little)"]
min_share = [0.2, "Share of the calls of a step from which these copies are the cause of its idle time (a fifth)"]
max_call_ns = [50000, "Most idle time that one call costs (50 µs: more is other work of the host)"]
*/
WITH copies_of_steps AS (
    SELECT
        count(*)::DOUBLE AS copies, sum(m.size_bytes)::DOUBLE AS total_bytes, avg(m.size_bytes) AS mean_bytes,
        sum(m.duration_ns)::DOUBLE AS copy_ns
    FROM (
        FROM memcpys WHERE copy_kind = 'D2D' AND size_bytes <= $max_bytes AND coalesce(graph_node_id, 0) = 0
    ) AS m
    ASOF JOIN _steady_windows AS s ON s.process_id = m.process_id AND s.start_ns <= m.start_ns
    WHERE m.start_ns < s.end_ns
),
bandwidth AS (
    SELECT max(memory_bytes_per_s) AS bytes_per_s FROM gpus
)
SELECT
    c.copies / (c.copies + t.launch_calls * t.units) AS call_share,
    least(t.idle_ns * call_share, $max_call_ns * c.copies / t.units)
    + greatest(c.copy_ns - coalesce(2e9 * c.total_bytes / b.bytes_per_s, 0), 0) / t.units AS recoverable_ns,
    0.4 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    c.copies / t.units AS copies, c.mean_bytes, c.total_bytes / t.units AS total_bytes, t.launch_calls AS launches,
    t.idle_ns, t.wall_ns, c.copy_ns / t.units AS copy_ns
FROM copies_of_steps AS c, bandwidth AS b, _step_totals AS t
WHERE t.has_steps AND c.copies >= $min_copies * t.units AND call_share >= $min_share
