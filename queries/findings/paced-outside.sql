/*
code = "NSI114"
title = "The loop runs at a fixed rate"
family = "paced"
severity = "critical"
explains = [
    "cpu-work", "stall-place", "launch-bound", "many-launches", "slow-launches", "other-wait", "alternating",
    "small-grid",
    "hot-kernels", "one-block",
]
meaning = """
Every step takes the same time, at a usual rate of cameras, displays or timers, and the GPU is idle for most of
it. The program waits for something outside. A faster GPU part changes the latency, not the rate."""
evidence = [
    "a step takes {step_ns}, within {off_pct} of {rate} a second, and varies by {variation_pct}",
    "the GPU is busy for {busy_ns} of it",
]
caveat = """
The rate is a coincidence: then the idle time is the host's own work (nsys profile -t osrt --sample=process-tree)."""
effort = "redesign"
report = "steps"

[cure]
any = """
Nothing to gain in rate. If the rate is to rise, raise it at its source (camera, display, timer); if latency counts,
shorten the GPU part."""

[params.least_steps]
default = 20
help = "Fewest steps (20: a mean variation of fewer says little)"

[params.most_variation_pct]
default = 5.0
help = "Largest standard deviation, as a share of the mean (5: work of the host varies more)"

[params.most_off_pct]
default = 0.5
help = "Largest distance from a usual rate (0.5: clocks of cameras and displays)"
*/
WITH durations AS (
    SELECT
        count(*) AS steps, median(duration_ns) AS step_ns, avg(duration_ns) AS mean_ns,
        100 * stddev_pop(duration_ns) / avg(duration_ns) AS variation_pct
    FROM steps WHERE phase = 'steady'
),
rates AS (
    SELECT unnest([1, 2, 5, 10, 12, 15, 20, 24, 25, 30, 50, 60, 72, 90, 100, 120, 144, 240, 1000]) AS rate
),
nearest AS (
    SELECT d.*, r.rate, 100 * abs(d.mean_ns * r.rate / 1e9 - 1) AS off_pct
    FROM durations AS d, rates AS r
    ORDER BY off_pct LIMIT 1
)
SELECT
    NULL AS recoverable_ns,
    100 * t.idle_ns / t.wall_ns AS wall_pct,
    NULL AS place,
    n.step_ns, n.rate, n.off_pct, n.variation_pct, t.busy_ns
FROM nearest AS n, _step_totals AS t
WHERE n.steps >= $least_steps AND n.variation_pct <= $most_variation_pct AND n.off_pct <= $most_off_pct
    AND t.busy_ns <= 0.5 * t.wall_ns
