/*
code = "NSI903"
title = "CUDA calls fail"
family = "failed"
severity = "critical"
meaning = """
What a failed call should have done did not happen, nor did the work that depends on it: these figures are of a run
that went wrong."""
evidence = ["{failures}", "{more_calls:more call}"]
caveat = """
The program expects it, such as an allocation that is retried with a smaller size."""
effort = "function"
links = ["CUDA Runtime API, cudaError_t", "Compute Sanitizer User Manual"]
report = '''
sql "SELECT name, return_value, count(*) AS calls FROM api_calls WHERE return_value <> 0 GROUP BY ALL ORDER BY ALL"
'''

[items]
failures = ["{name}: {failed_calls} of {calls:call}", ["error {return_value} ({reason})", "error {return_value}"]]

[cure]
any = "Fix this first. compute-sanitizer names the kernel that fails."
cuda = """
Fix this first: check the return value of each call, and cudaGetLastError after each launch; compute-sanitizer names
the kernel."""
pytorch = "Fix this first: run with CUDA_LAUNCH_BLOCKING=1 to get the line that fails, or under compute-sanitizer."
*/
-- Not a failure: a query of unfinished work (600), a request for something that exists already, and calls while CUDA
-- shuts down (4, 709).
WITH failed_calls AS MATERIALIZED (
    SELECT
        name, return_value, count(*) AS failed,
        row_number() OVER (ORDER BY count(*) DESC, name, return_value) AS turn
    FROM outer_api_calls
    WHERE return_value <> 0 AND (
        call_group IN ('launch', 'graph launch', 'copy', 'memset', 'alloc')
            AND return_value NOT IN (4, 600, 704, 709, 712)
        -- The next call that waits for a kernel returns the kernel's error.
        OR call_group = 'sync' AND return_value IN (700, 702, 710, 714, 715, 716, 717, 718, 719)
    )
    GROUP BY name, return_value
),
all_calls AS (
    SELECT name, count(*) AS calls FROM outer_api_calls WHERE name IN (SELECT name FROM failed_calls) GROUP BY name
),
reasons(return_value, reason) AS (
    VALUES
    (1, 'invalid value'), (2, 'out of memory'), (9, 'invalid configuration'), (98, 'invalid device function'),
    (209, 'no kernel image for the device'), (222, 'the driver is older than the PTX compiler'),
    (700, 'illegal address'), (701, 'too many resources requested'), (702, 'timeout'),
    (710, 'assertion in a kernel'), (716, 'misaligned address'), (719, 'a kernel failed')
)
SELECT
    NULL AS recoverable_ns,
    NULL AS wall_pct,
    NULL AS place,
    list(
        {
            'name': f.name, 'failed_calls': f.failed, 'calls': c.calls, 'return_value': f.return_value,
            'reason': r.reason
        }
        ORDER BY f.turn
    ) FILTER (f.turn <= 3) AS failures,
    sum(f.failed) FILTER (f.turn > 3) AS more_calls
FROM failed_calls AS f
JOIN all_calls AS c USING (name)
LEFT JOIN reasons AS r USING (return_value)
HAVING count(*) > 0
