/*
title = "CUDA calls fail"
family = "failed"
severity = "critical"
meaning = """
What a failed call should have done did not happen, nor did the work that depends on it: these figures are of a run
that went wrong."""
action = """
Fix this first: check the return value of each call, and cudaGetLastError after each launch (compute-sanitizer names the
kernel)."""
caveat = """
The program expects it, such as an allocation that is retried with a smaller size."""
report = '''
sql "SELECT name, return_value, count(*) AS calls FROM api_calls WHERE return_value <> 0 GROUP BY ALL ORDER BY ALL"
'''
*/
-- Not a failure: a query of unfinished work (600), a request for something that exists already, and calls while CUDA
-- shuts down (4, 709).
WITH failed_calls AS (
    SELECT name, return_value, count(*) AS calls
    FROM outer_api_calls
    WHERE return_value <> 0 AND (
        call_group IN ('launch', 'graph launch', 'copy', 'memset', 'alloc')
            AND return_value NOT IN (4, 600, 704, 709, 712)
        -- The next call that waits for a kernel returns the kernel's error.
        OR call_group = 'sync' AND return_value IN (700, 702, 710, 714, 715, 716, 717, 718, 719)
    )
    GROUP BY ALL
),
most_frequent_failures AS MATERIALIZED (
    FROM failed_calls ORDER BY calls DESC, name, return_value LIMIT 3
)
SELECT
    NULL AS recoverable_ns,
    NULL AS wall_pct,
    NULL AS place,
    string_agg(
        w.name || ': ' || w.calls || ' of ' || counted_text(c.calls, 'call') || ', error ' || w.return_value
            || coalesce(' (' || CASE w.return_value
                WHEN 1 THEN 'invalid value'
                WHEN 2 THEN 'out of memory'
                WHEN 9 THEN 'invalid configuration'
                WHEN 98 THEN 'invalid device function'
                WHEN 209 THEN 'no kernel image for the device' WHEN 222 THEN 'the driver is older than the PTX compiler'
                WHEN 700 THEN 'illegal address' WHEN 701 THEN 'too many resources requested' WHEN 702 THEN 'timeout'
                WHEN 710 THEN 'assertion in a kernel' WHEN 716 THEN 'misaligned address' WHEN 719 THEN 'a kernel failed'
            END || ')', ''),
        '; ' ORDER BY w.calls DESC, w.name, w.return_value
    )
        || coalesce(
            (
                SELECT '; ' || counted_text(sum(calls), 'more call')
                FROM (FROM failed_calls ORDER BY calls DESC, name, return_value OFFSET 3)
                HAVING count(*) > 0
            ),
            ''
        ) AS evidence
FROM most_frequent_failures AS w
JOIN (
    SELECT name, count(*) AS calls
    FROM outer_api_calls
    WHERE name IN (SELECT name FROM most_frequent_failures)
    GROUP BY name
) AS c USING (name)
HAVING count(*) > 0
