/*
code = "NSI213"
title = "The host waits after each copy to the GPU"
family = "sync-after-copy"
blocks = ["late-host"]
meaning = """
The host waits until each copy has arrived before it starts the next one. Work that is put on the same stream later
finds the data there without a wait."""
evidence = [
    "{copies:copy|copies} to the GPU {per} of {mean_bytes} on average, each followed by a wait, most in {call}",
    "{launches:launch|launches} {per}",
    "the GPU is idle for {idle_ns} of {wall_ns} {per}",
]
skip_if = "The host overwrites its buffer right after the copy: then use two buffers in turn."
effort = "line"
estimate = """
High: the idle time of the GPU times the share of these copies among the calls of a step, a copy with a wait counted as
three launches. Low: 40% of it."""
links = [
    "CUDA C++ Best Practices Guide, Asynchronous and Overlapping Transfers with Computation",
    "PyTorch documentation, CUDA semantics: Use pinned memory buffers",
]
report = "syncs"
when = """
SELECT 1 FROM waits WHERE NOT is_copy AND copy_kind = 'H2D' AND copy_bytes > $min_bytes
HAVING count(*) >= $min_copies"""

[fix]
any = "Copy asynchronously from pinned memory, without a wait: later work of the stream runs after the copy."
pytorch = """
Copy from pinned memory without a wait: DataLoader(pin_memory=True) and .to("cuda", non_blocking=True); no
synchronize() after it."""
jax = "Put the whole batch on the device with one jax.device_put call, without block_until_ready()."
cupy = "Copy from pinned memory on a stream (array.set(buffer, stream=stream)), without synchronize() after it."
numba = "Copy from pinned memory on a stream (cuda.to_device(array, stream=stream)), without synchronize() after it."
cuda = "Copy with cudaMemcpyAsync from memory of cudaMallocHost, and remove the cudaStreamSynchronize after it."
openacc = "Add async to update device and to the data clauses, and wait once before the host changes the data."
openmp = "Add nowait to target update to, and wait once (taskwait) before the host changes the data."
julia = "Copy from pinned memory (CUDA.pin), and remove synchronize() after each copy."

[params]
min_copies = [1, "Fewest such copies in a step"]
min_bytes = [256, "Smaller copies are single values: small-copies reports them"]
min_share = [0.2, "Share of the calls of a step from which these copies are the cause of its idle time (a fifth)"]
max_call_ns = [50000, "Most idle time that one call costs (50 µs: more is other work of the host)"]
*/
WITH copies_of_steps AS (
    SELECT count(*)::DOUBLE AS copies, avg(w.copy_bytes) AS mean_bytes, mode(w.name) AS call
    FROM (FROM waits WHERE NOT is_copy AND copy_kind = 'H2D' AND copy_bytes > $min_bytes) AS w
    ASOF JOIN _steady_windows AS s ON s.process_id = w.process_id AND s.host_start_ns <= w.start_ns
    WHERE w.start_ns < s.host_end_ns
),
all_copies AS (
    SELECT coalesce(sum(calls), 0) AS copies FROM _steady_copies WHERE copy_kind = 'H2D' AND avg_bytes > $min_bytes
)
SELECT
    3 * c.copies / (3 * c.copies + t.launch_calls * t.units) AS call_share,
    least(t.idle_ns * call_share, $max_call_ns * 3 * c.copies / t.units) AS recoverable_ns,
    0.4 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    c.copies / t.units AS copies, c.mean_bytes, c.call, t.launch_calls AS launches, t.idle_ns, t.wall_ns,
    -- A copy that takes longer than the GPU is idle is a problem of its own.
    ['late-host', 'wait'] || CASE WHEN b.copy_ns > t.idle_ns THEN ['pageable-copy'] ELSE ['copy'] END AS explains
FROM copies_of_steps AS c, all_copies AS a, _step_totals AS t
LEFT JOIN (SELECT time_ns AS copy_ns FROM classify_report WHERE part = 'copy') AS b ON true
WHERE t.has_steps AND 2 * c.copies >= a.copies AND c.copies >= $min_copies * t.units AND call_share >= $min_share
