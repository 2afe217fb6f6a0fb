/*
title = "Time per kernel or range over the steps (trend)"
topic = "steps"
place = 4
question = "How does a kernel's or a range's time change from step to step?"
examples = ["", "--by range"]
main = ["name", "pace", "median_ns", "first_ns", "last_ns", "slope_ns", "max_ns", "max_step"]
description = """
Adds up, for each step of the steady state, the time of each kernel that was launched in it, or with --by range the
host time of each NVTX range that began in it on any thread, and tracks it over the steps. The steps are those of
the report steps. A step in which a kernel or range did not run counts as 0. slope_ns is the slope of the straight
line through all steps (least squares). pace plots the steps, or means over equal groups of consecutive steps where
there are more than 40, on a scale from 0 to the largest."""
reading = """
A kernel whose time grows from step to step works on data that grows: attention over a KV cache, a list that is
never cleared. A single peak at max_step: see that step in steps, and its time with --from and --to in gaps. All
kernels slower together, without more work: the GPU's clock dropped. A sawtooth: something else is done every N
steps."""
empty = "No steps were found, or nothing was launched in them: see nsys-insight steps"

[params.by]
default = "kernel"
choices = ["kernel", "range"]
help = "What to follow: kernels by name, or NVTX ranges by name"

[params.name]
type = "text"
help = "Only kernels or ranges of this name; * and ? are wildcards"

[columns]
name = "The kernel or the NVTX range"
pace = "Time in each step, plotted from 0 to the largest"
median_ns = "Median of its time in a step"
first_ns = "Time in the first step"
last_ns = "Time in the last step"
slope_ns = "How much its time grows per step: the slope of the line"
max_ns = "Time in the slowest step"
max_step = "Number of that step"
calls_per_step = "Executions, or ranges, per step"
total_ns = "Sum over the steps"
steps = "Steps of the steady state"

[notes]
graphs.use = "steady_graphs"
graphs.query = """
SELECT count(*) AS steps
FROM steps WHERE phase = 'steady' AND kernels IS NULL HAVING count(*) > 0 AND $by = 'kernel'"""
*/
WITH steady_steps AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY step) - 1 AS place FROM steps WHERE phase = 'steady'
),
steady_step_count AS (
    SELECT count(*) AS steps FROM steady_steps
),
-- Ranges whose names differ only in their numbers are one series. Names are long, so a number stands for each.
series AS MATERIALIZED (
    SELECT *, dense_rank() OVER (ORDER BY name) AS series
    FROM (
        SELECT k.name_id, NULL AS range_name, coalesce(s.name, '(no name)') AS name
        FROM (SELECT DISTINCT name_id FROM step_kernels WHERE $by = 'kernel') AS k
        LEFT JOIN strings AS s USING (name_id)
        UNION ALL
        SELECT NULL, name, fold(name) FROM (SELECT DISTINCT name FROM nvtx_ranges WHERE $by = 'range')
    )
    WHERE $name IS NULL OR name = $name OR fits_pattern(name, $name)
),
run_times AS (
    SELECT y.place, n.series, sum(k.calls)::BIGINT AS calls, sum(k.kernel_ns)::BIGINT AS time_ns
    FROM step_kernels AS k
    JOIN steady_steps AS y USING (step)
    JOIN series AS n ON n.name_id IS NOT DISTINCT FROM k.name_id
    WHERE $by = 'kernel'
    GROUP BY ALL
    UNION ALL
    SELECT c.place, f.series, count(*), sum(n.duration_ns)::BIGINT
    FROM nvtx_ranges AS n
    JOIN series AS f ON f.range_name = n.name
    ASOF JOIN steady_steps AS c ON c.process_id = n.process_id AND c.host_start_ns <= n.start_ns
    WHERE $by = 'range' AND n.start_ns < c.host_end_ns AND n.duration_ns IS NOT NULL
    GROUP BY ALL
),
run_counts AS (
    SELECT series, sum(calls)::BIGINT AS calls FROM run_times GROUP BY series
),
times_by_step AS (
    SELECT n.series, n.calls, s.place, s.step, coalesce(t.time_ns, 0) AS time_ns
    FROM run_counts AS n
    CROSS JOIN steady_steps AS s
    LEFT JOIN run_times AS t ON t.series = n.series AND t.place = s.place
),
time_statistics AS (
    SELECT
        p.series,
        quantile_cont(p.time_ns, 0.5) AS median_ns,
        arg_min(p.time_ns, p.place) AS first_ns,
        arg_max(p.time_ns, p.place) AS last_ns,
        regr_slope(p.time_ns, p.place) AS slope_ns,
        max(p.time_ns) AS max_ns,
        min(p.step) FILTER (p.time_ns = m.max_ns) AS max_step,
        any_value(p.calls) AS calls,
        sum(p.time_ns)::BIGINT AS total_ns
    FROM times_by_step AS p
    JOIN (SELECT series, max(time_ns) AS max_ns FROM times_by_step GROUP BY series) AS m USING (series)
    GROUP BY p.series
),
sparklines AS (
    SELECT
        series,
        string_agg(
            substr('▁▂▃▄▅▆▇█', 1 + least(7, (8 * time_ns // nullif(max_ns, 0))::INTEGER), 1), '' ORDER BY bucket
        ) AS pace
    FROM (
        SELECT
            p.series, p.place * least(40, c.steps) // c.steps AS bucket, avg(p.time_ns) AS time_ns,
            max(avg(p.time_ns)) OVER (PARTITION BY p.series) AS max_ns
        FROM times_by_step AS p CROSS JOIN steady_step_count AS c
        GROUP BY p.series, bucket
    )
    GROUP BY series
)
SELECT
    n.name,
    d.pace,
    m.median_ns,
    m.first_ns,
    m.last_ns,
    m.slope_ns,
    m.max_ns,
    m.max_step,
    m.calls / c.steps AS calls_per_step,
    m.total_ns,
    c.steps
FROM time_statistics AS m
JOIN sparklines AS d USING (series)
JOIN (SELECT DISTINCT series, name FROM series) AS n USING (series)
CROSS JOIN steady_step_count AS c
ORDER BY m.total_ns DESC, n.name
