/*
code = "NSI307"
title = "Whole arrays are copied in each iteration of a compiled loop"
family = "loop-copies"
explains = ["copy"]
meaning = """
The compiler keeps what a loop carries in one buffer. What each iteration returns next to it is copied into a stacked
array, which is as large as all iterations together. A carried array is copied to its place if the new value could not
be written there, because the old one was still read."""
evidence = [
    """{stacked:copy|copies} {per} of {stacked_bytes} each {#stacked:stores|store} what an iteration returns in a
    stacked array (dynamic_update_slice): {stacked_ns}""",
    "{carried:copy|copies} {per} of {carried_bytes} each are of arrays that the loop carries: {carried_ns}",
    "together {copy_pct} of the step",
]
skip_if = """
The results of all iterations are used later, as by a gradient or a plot; or the copied arrays are the old values that
the next iteration reads."""
effort = "function"
estimate = """
High: the time of all copies of large arrays in the body of the loop. Low: half of the time of those into stacked
arrays."""
links = ["JAX documentation, jax.lax.scan", "JAX documentation, jax.lax.fori_loop"]
report = "nvtx"
when = "SELECT 1 FROM frameworks WHERE framework = 'jax' AND is_program"

[fix.stacked]
any = """
If only the last state is needed, return nothing per iteration but what the loop carries. If a few are needed, put a
loop without results between two of them."""
jax = """
If only the last state is needed, return nothing per iteration: (carry, None) in lax.scan, or lax.fori_loop. If a few
are needed, scan over these in an outer loop, and run the iterations between them in an inner one."""

[fix.carried]
any = """
Unroll the loop by two, so that the new state of each iteration has a buffer of its own; or write each element in place,
in one expression that reads all that it needs of the old state."""
jax = """
Unroll the loop by two (unroll=2 in lax.fori_loop or lax.scan), so that the new state of each iteration has a buffer of
its own; by four if three arrays change places. Look whether the copies are gone."""

[params]
min_bytes = [1048576, "Smallest copies that count (1 MiB: shorter ones take as long as a launch)"]
min_repeats = [8, "Fewest copies in the steps (8: fewer are not worth a change of the loop)"]
min_pct = [2.0, "Share of the step from which they are reported (2: twice what runs differ by)"]
*/
-- Unrolling was measured for loops over arrays of 64 MiB (JAX 0.11, H200, 64 iterations; ms by 1, 2 and 4):
-- one state 5.1, 2.9, 2.8; two that change places 8.2, 3.8, 3.8; three 13.4, 7.9, 4.7. By 4, none has copies left.
WITH thunks AS (
    SELECT
        process_id, thread_id, start_ns, end_ns, name LIKE '%hlo\_op=while%' ESCAPE '\' AS is_loop,
        contains(name, 'dynamic_update_slice') AS is_stacked
    FROM nvtx_ranges
    WHERE starts_with(name, 'Thunk:#') AND name NOT LIKE '%hlo\_op=%-start%' ESCAPE '\'
),
copies AS (
    SELECT m.process_id, a.thread_id, a.start_ns, m.size_bytes, m.duration_ns
    FROM (FROM memcpys WHERE copy_kind = 'D2D' AND size_bytes >= $min_bytes) AS m
    JOIN api_calls AS a USING (process_id, correlation_id)
    ASOF JOIN _steady_windows AS s ON s.process_id = m.process_id AND s.start_ns <= m.start_ns
    WHERE m.start_ns < s.end_ns AND a.call_group = 'copy'
),
loop_copies AS (
    SELECT c.*, t.is_stacked
    FROM copies AS c
    ASOF JOIN (FROM thunks WHERE is_loop) AS l
        ON l.process_id = c.process_id AND l.thread_id = c.thread_id AND l.start_ns <= c.start_ns
    ASOF JOIN (FROM thunks WHERE NOT is_loop) AS t
        ON t.process_id = c.process_id AND t.thread_id = c.thread_id AND t.start_ns <= c.start_ns
    WHERE c.start_ns < l.end_ns AND c.start_ns < t.end_ns
),
totals AS (
    SELECT
        count(*) FILTER (is_stacked) AS stacked, count(*) FILTER (NOT is_stacked) AS carried,
        avg(size_bytes) FILTER (is_stacked) AS stacked_bytes, avg(size_bytes) FILTER (NOT is_stacked) AS carried_bytes,
        sum(duration_ns) FILTER (is_stacked)::DOUBLE AS stacked_ns,
        sum(duration_ns) FILTER (NOT is_stacked)::DOUBLE AS carried_ns, sum(duration_ns)::DOUBLE AS copy_ns
    FROM loop_copies
)
SELECT
    c.copy_ns / t.units AS recoverable_ns, 0.5 * coalesce(c.stacked_ns, 0) / t.units AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct, NULL AS place,
    CASE WHEN c.stacked > 0 THEN 'stacked' ELSE 'carried' END AS cure_case,
    nullif(c.stacked, 0) / t.units AS stacked, c.stacked_bytes, c.stacked_ns / t.units AS stacked_ns,
    nullif(c.carried, 0) / t.units AS carried, c.carried_bytes, c.carried_ns / t.units AS carried_ns,
    wall_pct AS copy_pct
FROM totals AS c, _step_totals AS t
WHERE t.has_steps AND c.stacked + c.carried >= $min_repeats AND wall_pct >= $min_pct
    AND NOT EXISTS (FROM nvtx_ranges WHERE name LIKE 'Thunk:#%transpose(jvp%')
