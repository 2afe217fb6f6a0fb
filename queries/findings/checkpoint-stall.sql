/*
code = "NSI116"
title = "Some steps stop to write data out"
family = "checkpoint"
explains = [
    "outlier-steps", "d2h-sync", "other-wait", "cpu-work", "stall-place", "pageable-copy", "copy-bound", "allocation",
]
meaning = """
A few steps take several times as long as the others, and copy much more data to the host: a checkpoint, an image or a
log. The loop waits until it is written."""
evidence = [
    "{long_steps} of {steps:step} take {long_ns} on average, the others {ordinary_ns} (median)",
    "each of them copies {copied_bytes} to the host; an ordinary step {ordinary_bytes}",
    "one about every {every:step}",
]
caveat = """
The data must be safe before the program may go on."""
effort = "function"
estimate = """
High: the time of the long steps above the median, over all steps. Low: 60 % of it."""
links = ["PyTorch documentation, torch.distributed.checkpoint: async_save"]
report = "steps"

[cure]
any = "Copy the data to pinned memory, let the loop go on, and write it in another thread."
pytorch = """
Save asynchronously: torch.distributed.checkpoint.async_save, or copy the state to pinned memory
(non_blocking=True) and call torch.save in a thread."""
jax = "Save asynchronously: Orbax AsyncCheckpointer."
cuda = "Copy with cudaMemcpyAsync to pinned memory on a stream of its own, and write it in another thread."

[params.least_ratio]
default = 2.0
help = "Times the median from which a step is long (2: beyond usual variation)"

[params.least_bytes]
default = 1000000
help = "Fewest bytes that a long step copies to the host (1 MB: more than a few values)"
*/
WITH steady_steps AS (
    SELECT step, duration_ns, d2h_bytes FROM steps WHERE phase = 'steady'
),
medians AS (
    SELECT median(duration_ns) AS step_ns, median(d2h_bytes) AS copied_bytes, count(*) AS steps FROM steady_steps
),
long_steps AS (
    SELECT
        count(*) AS long_steps, avg(s.duration_ns) AS long_ns, sum(s.duration_ns - m.step_ns) AS excess_ns,
        avg(s.d2h_bytes) AS copied_bytes,
        CASE WHEN count(*) > 1 THEN (max(step) - min(step)) / (count(*) - 1) END AS every
    FROM steady_steps AS s, medians AS m
    WHERE s.duration_ns >= $least_ratio * m.step_ns AND s.d2h_bytes >= greatest($least_bytes, 4 * m.copied_bytes)
    HAVING count(*) BETWEEN 1 AND 0.3 * any_value(m.steps)
)
SELECT
    l.excess_ns / t.units AS recoverable_ns,
    0.6 * l.excess_ns / t.units AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    l.long_steps, m.steps, l.long_ns, m.step_ns AS ordinary_ns, l.copied_bytes, m.copied_bytes AS ordinary_bytes,
    l.every
FROM long_steps AS l, medians AS m, _step_totals AS t
WHERE t.has_steps
