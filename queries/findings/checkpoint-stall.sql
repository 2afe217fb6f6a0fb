/*
code = "NSI116"
title = "Some steps stop to copy data to the host"
family = "checkpoint"
is_host_work = true
explains = ["late-host", "start", "wait", "copy", "outlier-steps", "allocation"]
meaning = """
A few steps take at least twice as long as the median step, and copy much more data to the host than it does: such as a
checkpoint, an image or a log. The loop goes on when that is done."""
evidence = [
    "{long_steps} of {steps:step} {#long_steps:takes|take} {long_ns} on average, the others {ordinary_ns} (median)",
    "each of them copies {copied_bytes} to the host; an ordinary step {ordinary_bytes}",
    "one about every {every:step}",
    "files take {file_ns} of each on average, mostly in {file_call}()",
]
skip_if = "The data must be safe before the program may go on."
effort = "function"
estimate = """
High: the time of the long steps above the median, and of a step as long right after one of them (the files are still
being written), over all steps. Low: 60% of it."""
links = ["PyTorch documentation, torch.distributed.checkpoint: async_save"]
report = "steps"
when = "SELECT 1 FROM steps WHERE phase = 'steady' AND d2h_bytes >= $min_bytes LIMIT 1"

[fix]
any = "Copy the data to pinned memory, let the loop go on, and write it in another thread."
pytorch = """
Save asynchronously: torch.distributed.checkpoint.async_save, or copy the state to pinned memory
(non_blocking=True) and call torch.save in a thread."""
jax = "Save asynchronously: Orbax AsyncCheckpointer."
cuda = "Copy with cudaMemcpyAsync to pinned memory on a stream of its own, and write it in another thread."

[params]
min_ratio = [2.0, "Times the median from which a step is long (2: beyond usual variation)"]
min_bytes = [1000000, "Fewest bytes that a long step copies to the host (1 MB: more than a few values)"]
*/
WITH steady_steps AS (
    SELECT step, process_id, host_start_ns, host_end_ns, duration_ns, d2h_bytes FROM steps WHERE phase = 'steady'
),
medians AS (
    SELECT
        median(duration_ns) AS step_ns, median(d2h_bytes) AS copied_bytes, count(*) AS steps,
        sum(duration_ns)::DOUBLE AS all_ns
    FROM steady_steps
),
long_steps AS (
    SELECT s.*, m.step_ns
    FROM steady_steps AS s, medians AS m
    WHERE s.duration_ns >= $min_ratio * m.step_ns AND s.d2h_bytes >= greatest($min_bytes, 4 * m.copied_bytes)
),
file_calls AS (
    SELECT sum(duration_ns)::DOUBLE AS total_ns, arg_max(name, duration_ns) AS file_call
    FROM (
        SELECT o.name, sum(o.duration_ns) AS duration_ns
        FROM (
            FROM os_calls
            WHERE name IN ('open', 'open64', 'fopen', 'fopen64', 'fclose', 'close', 'write', 'writev', 'pwrite',
                'pwrite64', 'fwrite', 'fflush', 'fsync', 'fdatasync', 'rename', 'ftruncate')
        ) AS o
        ASOF JOIN long_steps AS s ON s.process_id = o.process_id AND s.host_start_ns <= o.start_ns
        WHERE o.start_ns < s.host_end_ns
        GROUP BY o.name
    )
),
-- The step after may wait for what is still being written.
steps_after AS (
    SELECT coalesce(sum(s.duration_ns - m.step_ns), 0) AS excess_ns
    FROM steady_steps AS s JOIN long_steps AS l ON s.step = l.step + 1, medians AS m
    WHERE s.duration_ns >= $min_ratio * m.step_ns AND s.step NOT IN (SELECT step FROM long_steps)
),
long_totals AS (
    SELECT
        count(*) AS long_steps, avg(duration_ns) AS long_ns,
        sum(duration_ns - step_ns) + any_value(a.excess_ns) AS excess_ns,
        avg(d2h_bytes) AS copied_bytes,
        CASE WHEN count(*) > 1 THEN round((max(step) - min(step)) / (count(*) - 1))::BIGINT END AS every
    FROM long_steps, steps_after AS a
    HAVING count(*) BETWEEN 1 AND 0.3 * (SELECT steps FROM medians)
)
SELECT
    t.wall_ns * l.excess_ns / m.all_ns AS recoverable_ns,
    0.6 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    l.long_steps, m.steps, l.long_ns, m.step_ns AS ordinary_ns, l.copied_bytes, m.copied_bytes AS ordinary_bytes,
    l.every, f.total_ns / l.long_steps AS file_ns, f.file_call
FROM long_totals AS l, medians AS m, file_calls AS f, _step_totals AS t
WHERE t.has_steps
