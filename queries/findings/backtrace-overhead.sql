/*
code = "NSI904"
title = "Collecting backtraces slows the host"
family = "profiler"
overlaps = true
meaning = """
nsys collects a backtrace after a CUDA call that lasts long enough, before the program goes on. The host is slower than
without it, so what is said of the host's time, and what removing it saves, is too much."""
evidence = [
    """after {calls:call} with a backtrace, the host needs {extra_ns} longer on average until its next call than after
    calls of the same name without one""",
    "{backtrace_ns} in total, {share_pct} of the wall time",
]
skip_if = "The host is hidden behind the GPU's work: then the wall time is the same."
effort = "flag"
estimate = """
Of each name of call, the median time until the next call of its thread with a backtrace, minus that without one, times
the calls with one; for no name more than for launches, after which the host does the same."""
links = ["Nsight Systems User Guide, CLI Profile Command Switch Options: --cudabacktrace"]
report = "sql"
when = "SELECT 1 FROM _chained_calls LIMIT 1"

[fix]
any = """
Take times from a run with --cudabacktrace=none. Where backtraces are needed, raise the threshold, such as
--cudabacktrace=kernel:1000000 (in ns)."""

[params]
min_pct = [5.0, "Share of the wall time from which it is reported (5: less changes no decision)"]
min_calls = [5, "Fewest calls of a name with and without a backtrace (5: for a median)"]
*/
WITH outer_calls AS (
    SELECT
        process_id, thread_id, correlation_id, name, call_group,
        lead(start_ns) OVER (PARTITION BY process_id, thread_id ORDER BY start_ns) - end_ns AS next_ns
    FROM outer_api_calls
),
chained_calls AS (
    SELECT DISTINCT process_id, correlation_id, true AS is_chained FROM _chained_calls
),
names AS (
    SELECT
        c.call_group, count(*) FILTER (b.is_chained) AS calls,
        median(c.next_ns) FILTER (b.is_chained) - median(c.next_ns) FILTER (b.is_chained IS NULL) AS extra_ns
    FROM outer_calls AS c
    LEFT JOIN chained_calls AS b USING (process_id, correlation_id)
    WHERE c.next_ns IS NOT NULL
    GROUP BY c.process_id, c.thread_id, c.call_group, c.name
    HAVING calls >= $min_calls AND count(*) - calls >= $min_calls AND extra_ns > 0
),
launches AS (
    SELECT arg_max(extra_ns, calls) AS most_ns FROM names WHERE call_group = 'launch' HAVING count(*) > 0
),
totals AS (
    SELECT sum(n.calls)::BIGINT AS calls, sum(n.calls * least(n.extra_ns, l.most_ns))::DOUBLE AS backtrace_ns
    FROM names AS n, launches AS l
    HAVING count(*) > 0
)
SELECT
    NULL AS recoverable_ns,
    100 * t.backtrace_ns / w.duration_ns AS wall_pct,
    NULL AS place,
    t.calls, t.backtrace_ns / t.calls AS extra_ns, t.backtrace_ns, wall_pct AS share_pct
FROM totals AS t, (SELECT sum(duration_ns)::DOUBLE AS duration_ns FROM wall) AS w
WHERE wall_pct >= $min_pct
