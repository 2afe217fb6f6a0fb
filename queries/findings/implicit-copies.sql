/*
code = "NSI313"
title = "An OpenACC construct copies its data in each step"
family = "implicit-copies"
explains = ["late-host", "start", "wait", "copy", "alternating", "small-copies", "sync-after-copy"]
meaning = """
Data that no data region keeps on the GPU are copied when the construct begins, and back when it ends: each time that
the loop around it runs."""
evidence = [
    "{place}: {copies:copy|copies} {per}, {copy_bytes} together, at the line of the construct itself [{variables}]",
    "the host takes {host_ns} {per} for them, the GPU {copy_ns}",
    "{more_places:more construct}",
]
skip_if = "The host reads or changes the data in each step."
effort = "line"
estimate = """
High: the host's time in these copies, as far as the GPU is idle or copies. Low: half of the time of the copies on the
GPU."""
links = ["OpenACC Programming and Best Practices Guide, Optimize Data Locality"]
report = "openacc"
when = "SELECT 1 FROM openacc_events WHERE kind = 'data' LIMIT 1"

[fix]
any = """
Put a data region around the loop (acc data copy, copyin, create), or enter data before it, and name the arrays in a
present clause of the construct; read results with update self where they are needed."""

[params]
min_copies = [1, "Fewest copies in a step (1: data that are copied less often are not copied by the loop)"]
*/
-- Lines that start kernels. A data region has its copies at a line of its own.
WITH compute_lines AS (
    SELECT DISTINCT source_file, line FROM openacc_events WHERE kind = 'launch' AND line IS NOT NULL
),
ranges AS MATERIALIZED (
    SELECT
        dense_rank() OVER (ORDER BY e.source_file, e.line) AS group_id, e.start_ns, e.end_ns AS close_ns,
        thread_of(e.thread_id, e.process_id) AS thread, e.variable, e.source_file || ':' || e.line AS place
    FROM (
        FROM openacc_events JOIN compute_lines USING (source_file, line)
        WHERE kind = 'data' AND regexp_matches(name, '(?i)upload|download')
    ) AS e
    ASOF JOIN _steady_windows AS w ON w.process_id = e.process_id AND w.host_start_ns <= e.start_ns
    WHERE e.start_ns < w.host_end_ns
),
constructs AS (
    SELECT r.*, o.copies, o.copy_ns, o.copy_bytes
    FROM (
        SELECT
            group_id, any_value(place) AS place, sum(duration(start_ns, close_ns)) AS host_ns,
            string_agg(DISTINCT variable, ', ' ORDER BY variable) AS variables
        FROM ranges GROUP BY group_id
    ) AS r
    JOIN _operations_in('ranges') AS o USING (group_id)
    WHERE o.copies >= $min_copies * (SELECT units FROM _step_totals)
),
totals AS (
    SELECT sum(host_ns) AS host_ns, sum(copy_ns) AS copy_ns, count(*) AS places FROM constructs
)
SELECT
    least(s.host_ns / t.units, t.idle_ns + s.copy_ns / t.units) AS recoverable_ns,
    least(0.5 * s.copy_ns / t.units, recoverable_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    c.place, c.copies / t.units AS copies, c.copy_bytes / t.units AS copy_bytes, c.host_ns / t.units AS host_ns,
    c.copy_ns / t.units AS copy_ns, c.variables, nullif(s.places - 1, 0) AS more_places
FROM (FROM constructs ORDER BY host_ns DESC, place LIMIT 1) AS c, totals AS s, _step_totals AS t
WHERE t.has_steps AND s.copy_ns > 0
