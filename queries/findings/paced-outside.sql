/*
code = "NSI114"
title = "The loop runs at a fixed rate"
family = "paced"
is_host_work = true
severity = "critical"
explains = [
    "late-host", "start", "wait", "kernel-time", "small-grid", "alternating", "host-input", "host-stage", "one-block",
]
meaning = """
Every step takes the same time, and the GPU is idle for most of it. Either the thread that launches sleeps or polls
meanwhile, or the rate is a usual one of cameras, displays and timers. Then a clock or something outside sets the rate,
and a faster GPU part changes the latency only."""
evidence = [
    [
        "a step takes {step_ns}, within {off_pct} of {rate} per second, and varies by {variation_pct}",
        "a step takes {step_ns} and varies by {variation_pct}",
    ],
    "the GPU is busy for {busy_ns} of it; the longest gap of a step takes {gap_ns} on average",
    "the thread that launches is in {sleep_call}() for {sleep_ns} of it",
]
skip_if = """
The rate is a coincidence: where no such call is in the trace, the idle time may be the host's own work, which nsys
profile -t osrt --sample=process-tree shows."""
effort = "redesign"
report = "steps"
when = """
SELECT 1 FROM steps WHERE phase = 'steady'
HAVING count(*) >= $min_sleeps AND 100 * stddev_pop(duration_ns) <= $max_variation_pct * avg(duration_ns)
    AND 100 * sum(gpu_busy_ns) <= $max_busy_pct * sum(duration_ns)"""

[fix]
any = """
Nothing to gain in rate. If the rate is to rise, raise it at its source (camera, display, timer); if latency counts,
shorten the GPU part. If the program itself sleeps or polls, let it wait for the event instead."""

[params]
min_steps = [20, "Fewest steps (20: a mean variation of fewer says little)"]
min_sleeps = [5,
    "Fewest steps where the host is seen to sleep for most of the idle time (5: the call says what it waits for)"]
max_variation_pct = [5.0, "Largest standard deviation, as a share of the mean (5: work of the host varies more)"]
max_busy_pct = [50.0, "Largest share of a step in which the GPU is busy (50: the gap is the larger part)"]
max_off_pct = [0.5, "Largest distance from a usual rate (0.5: clocks of cameras and displays)"]
*/
WITH steady_steps AS (
    SELECT step, process_id, thread_id, start_ns, end_ns, host_start_ns, host_end_ns, duration_ns
    FROM steps WHERE phase = 'steady'
),
durations AS (
    SELECT
        count(*) AS steps, median(duration_ns) AS step_ns, avg(duration_ns) AS mean_ns,
        100 * stddev_pop(duration_ns) / avg(duration_ns) AS variation_pct
    FROM steady_steps
),
usual_rates AS (
    SELECT unnest([1, 2, 5, 10, 12, 15, 20, 24, 25, 30, 50, 60, 72, 90, 100, 120, 144, 240, 1000]) AS rate
),
nearest_rate AS (
    SELECT r.rate, 100 * abs(d.mean_ns * r.rate / 1e9 - 1) AS off_pct
    FROM durations AS d, usual_rates AS r
    ORDER BY off_pct LIMIT 1
),
longest_gaps_of_steps AS (
    SELECT sum(gap_ns) / (SELECT count(*) FROM steady_steps) AS gap_ns
    FROM (
        SELECT s.step, max(i.end_ns - i.start_ns) AS gap_ns
        FROM (FROM _idle_time WHERE host = 'late') AS i
        ASOF JOIN steady_steps AS s ON s.start_ns <= i.start_ns
        WHERE i.start_ns < s.end_ns
        GROUP BY s.step
    )
),
sleeps AS (
    SELECT sum(o.duration_ns)::DOUBLE / (SELECT count(*) FROM steady_steps) AS sleep_ns, mode(o.name) AS sleep_call
    FROM (
        FROM os_calls
        WHERE is_sleep_or_poll(name)
    ) AS o
    ASOF JOIN steady_steps AS s
        ON s.process_id = o.process_id AND s.thread_id = o.thread_id AND s.host_start_ns <= o.start_ns
    WHERE o.start_ns < s.host_end_ns
),
-- What samples show the CPU to do is its own work.
sampled_work AS (
    SELECT coalesce(sum(time_ns), 0) AS sampled_ns FROM _cpu_work WHERE counted_by = 'activity' AND samples > 0
)
SELECT
    NULL AS recoverable_ns,
    100 * t.idle_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    d.step_ns, d.variation_pct, t.busy_ns, g.gap_ns,
    CASE WHEN n.off_pct <= $max_off_pct THEN n.rate END AS rate, n.off_pct,
    CASE WHEN 2 * p.sleep_ns >= t.idle_ns THEN p.sleep_ns END AS sleep_ns, p.sleep_call
FROM durations AS d, nearest_rate AS n, longest_gaps_of_steps AS g, sleeps AS p, sampled_work AS w, _step_totals AS t
WHERE (d.steps >= $min_steps OR (d.steps >= $min_sleeps AND 2 * p.sleep_ns >= t.idle_ns))
    AND d.variation_pct <= $max_variation_pct
    AND 100 * t.busy_ns <= $max_busy_pct * t.wall_ns AND 2 * g.gap_ns >= t.idle_ns
    AND (2 * p.sleep_ns >= t.idle_ns OR (n.off_pct <= $max_off_pct AND 2 * w.sampled_ns < t.idle_ns))
